#include "api/fairlead/sentences.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::api::queues {
namespace {

using shard::Explanation;
using ::testing::ElementsAre;

constexpr TimeNs kNow = 1'000'000 * kSecond;

// Somebody asks about activity 5 of workflow w.
class SentencesTest : public ::testing::Test {
 protected:
  SentencesTest() {
    asked.run.workflow_id = "w";
    asked.activity_id = "5";
    why.state = Explanation::State::kWaiting;
    why.queue = {NamespaceNum(7), model::ACTIVITY_TASK, "q"};
    why.level = 3;
    why.priority.set_fairness_key("tenant-a");
    why.since_ns = kNow - 12 * kSecond;
    why.parked_polls = 1;
  }

  std::vector<std::string> told() { return sentences_of(asked, why, rules, kNow); }

  static model::QueueRules::Pause pause(const std::string& reason, const std::string& identity) {
    model::QueueRules::Pause pause;
    pause.set_reason(reason);
    pause.set_identity(identity);
    pause.set_since_ns(kNow - 3 * kMinute);
    return pause;
  }

  shard::ExplainRequest asked;
  Explanation why;
  model::QueueRules rules;
};

const char* const kWaits =
    "Activity 5 of workflow w waits in queue q (activity), level 3, key tenant-a, since 12 s.";
const char* const kOnePoll = "1 poll of a worker waits for a task here.";

TEST_F(SentencesTest, TheNextTaskHasNobodyBeforeIt) {
  EXPECT_THAT(told(), ElementsAre(kWaits, "It is next in its level.", kOnePoll));
}

TEST_F(SentencesTest, WhoIsServedBeforeIsCounted) {
  why.standing.tasks_before_in_line = 3;
  why.standing.keys_before = 2;
  why.parked_polls = 4;
  EXPECT_THAT(told(), ElementsAre(kWaits, "3 tasks of its key are before it.",
                                  "2 keys are served before its key's next task.",
                                  "4 polls of workers wait for a task here."));
  why.standing.tasks_before_in_line = 1;
  why.standing.keys_before = 1;
  why.standing.is_behind_older_order = true;
  EXPECT_THAT(
      told(),
      ElementsAre(kWaits,
                  "The order of the queue was changed; the tasks from before the change go first.",
                  "1 task of its key is before it.", "1 key is served before its key's next task.",
                  "4 polls of workers wait for a task here."));
}

TEST_F(SentencesTest, ATaskWithoutAKeyAndAWorkflowTaskAreNamedAsSuch) {
  asked.activity_id.clear();
  why.queue.kind = model::WORKFLOW_TASK;
  why.priority.clear_fairness_key();
  EXPECT_EQ(told()[0],
            "The workflow task of workflow w waits in queue q (workflow), level 3, no key, since "
            "12 s.");
  why.sticky_queue = "host:1";
  why.standing.tasks_before_in_line = 1;
  EXPECT_EQ(told()[0],
            "The workflow task of workflow w waits in the queue of one worker (host:1) that "
            "belongs to queue q (workflow), level 3, no key, since 12 s.");
  EXPECT_EQ(told()[1], "1 task is before it.");
}

TEST_F(SentencesTest, AKeyInASharedLineIsToldFromTheOthersInIt) {
  why.shared_line = "/_sys/shared/7";
  why.others_before = 1;
  EXPECT_THAT(told(), ElementsAre(kWaits,
                                  "The queue has more keys than it may: its key shares the line "
                                  "/_sys/shared/7 with others, and 1 task of theirs is before it.",
                                  kOnePoll));
}

TEST_F(SentencesTest, WhatHoldsTheQueueIsNamedWithItsNumbers) {
  why.standing.is_queue_paused = true;
  why.standing.is_queue_capped = true;
  why.standing.queue_ready_ns = kNow + 250 * kMillisecond;
  why.queue_pause = pause("bad deploy", "ada");
  rules.set_running_max(10);
  rules.mutable_queue_limit()->set_per_second(0.5);
  EXPECT_THAT(told(),
              ElementsAre(kWaits, "The queue is paused since 3 min, by ada: bad deploy.",
                          "The queue has as many tasks running as it may have (10).",
                          "The queue is throttled for another 0.2 s (limit 0.5/s).", kOnePoll));
  // A limit that workers asked for is in no rule.
  rules.Clear();
  why.queue_pause.reset();
  EXPECT_THAT(told(), ElementsAre(kWaits, "The queue is paused.",
                                  "The queue has as many tasks running as it may have.",
                                  "The queue is throttled for another 0.2 s.", kOnePoll));
}

TEST_F(SentencesTest, WhatHoldsTheKeyIsNamedWithItsNumbers) {
  why.standing.holds = queue::kPaused | queue::kCapped | queue::kThrottled | queue::kTimed;
  why.standing.key_ready_ns = kNow + 400 * kMillisecond;
  why.key_pause = pause("", "ada");
  why.weight = 2.5;
  rules.set_running_max_per_key(2);
  rules.mutable_key_limit()->set_per_second(10);
  auto& rule = (*rules.mutable_keys())["tenant-a"];
  rule.set_per_second(7);
  EXPECT_THAT(told(),
              ElementsAre(kWaits, "Its key is paused since 3 min, by ada.",
                          "Its key has as many tasks running as it may have (2).",
                          "Its key is throttled for another 0.4 s (limit 10/s x weight 2.5).",
                          "Its key is throttled for another 0.4 s (its own limit 7/s).", kOnePoll));
  // The cap of its own counts before the one of all keys.
  rule.set_running_max(1);
  why.standing.holds = queue::kCapped;
  EXPECT_EQ(told()[1], "Its key has as many tasks running as it may have (1).");
}

TEST_F(SentencesTest, ADrainIsNotCalledAPause) {
  why.standing.holds = queue::kDrained;
  EXPECT_EQ(told()[1], "Its key is being drained, and it came after the drain began.");
}

TEST_F(SentencesTest, ALimitOfZeroHasNoEnd) {
  why.standing.holds = queue::kThrottled;
  why.standing.key_ready_ns = kNever;
  rules.mutable_key_limit()->set_per_second(0);
  EXPECT_EQ(told()[1], "Its key is throttled until its limit is changed (limit 0/s x weight 1).");
}

TEST_F(SentencesTest, AnAbsentWorkerIsNamed) {
  why.parked_polls = 0;
  EXPECT_EQ(told().back(), "No worker has polled here since the server started.");
  why.last_poll_ns = kNow - 5 * kMinute;
  EXPECT_EQ(told().back(), "No worker waits for a task here; the last poll was 5 min ago.");
}

TEST_F(SentencesTest, AnAbsentVersionIsNamed) {
  why.version = "2026.3";
  why.parked_polls = 0;
  EXPECT_EQ(told().back(),
            "Only workers of version 2026.3 may have it, and none waits for a task here.");
}

TEST_F(SentencesTest, ATypeThatNobodyTakesIsNamed) {
  why.parked_polls = 0;
  why.last_poll_ns = kNow - 5 * kSecond;
  why.is_type_refused = true;
  EXPECT_EQ(told().back(), "Workers poll here, and none of them takes its type.");
}

TEST_F(SentencesTest, ATaskThatDoesNotWaitIsToldInOneSentence) {
  why.state = Explanation::State::kRunning;
  why.worker_identity = "w1";
  EXPECT_THAT(told(), ElementsAre("Activity 5 of workflow w runs since 12 s, on worker w1. It came "
                                  "from queue q (activity), level 3, key tenant-a."));
  // Outside of a queue only the priority knows the level.
  why.level = 0;
  why.priority.set_priority_key(3);
  why.state = Explanation::State::kBackingOff;
  why.next_attempt_ns = kNow + 90 * kSecond;
  EXPECT_THAT(told(), ElementsAre("Activity 5 of workflow w waits for its next attempt, which is "
                                  "due in 1 min 30 s. It will go to queue q (activity), level 3, "
                                  "key tenant-a."));
  why.next_attempt_ns = kNow;
  EXPECT_THAT(told()[0], ::testing::HasSubstr("which is due now. "));
  why.state = Explanation::State::kPaused;
  why.pause.emplace();
  why.pause->set_since_ns(kNow - 3 * kMinute);
  why.pause->set_identity("ada");
  why.pause->set_reason("bad deploy");
  EXPECT_THAT(told(), ElementsAre("Activity 5 of workflow w is paused since 3 min, by ada: bad "
                                  "deploy. Unpaused, it will go to queue q (activity), level 3, "
                                  "key tenant-a."));
  why.state = Explanation::State::kRunning;
  EXPECT_EQ(told()[1],
            "It is paused since 3 min, by ada: bad deploy. No attempt will follow this one.");
  why.state = Explanation::State::kNothingToDo;
  EXPECT_THAT(told(), ElementsAre("Workflow w has no open activity 5."));
  asked.activity_id.clear();
  EXPECT_THAT(told(), ElementsAre("Workflow w has no workflow task now: it waits for something "
                                  "else, or it is closed."));
}

}  // namespace
}  // namespace fairlead::api::queues
