#include "shard/schedule_host.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "shard/node_testing.h"
#include "shard/schedule_list.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

using Outcome = schedule::Fired::Outcome;

// Schedules of the other door's runs: nothing here belongs to one door. The clock begins at a day's
// beginning.
class ScheduleHostTest : public testing::Test {
 protected:
  static ScheduleRef ref(const std::string& id) { return {NamespaceNum(1), id}; }

  static absl::Status create(Life& life, const std::string& id, DurationNs every,
                             model::OverlapPolicy policy = model::OVERLAP_SKIP) {
    CreateSchedule request;
    request.schedule = ref(id);
    auto& definition = request.definition;
    definition.mutable_spec()->add_intervals()->set_every_ns(every);
    definition.set_overlap(policy);
    definition.mutable_start()->set_workflow_type("Report");
    definition.mutable_start()->set_task_queue("reports");
    absl::Status answer;
    life.node->create_schedule(std::move(request), [&](auto done) { answer = done.status(); });
    life.thread.run();
    return answer;
  }
  static model::Schedule describe(Life& life, const std::string& id) {
    model::Schedule found;
    life.node->describe_schedule(ref(id), [&](auto schedule) {
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      found = *std::move(schedule);
    });
    life.thread.run();
    return found;
  }
  static schedule::Fired trigger(Life& life, const std::string& id) {
    schedule::Fired answer;
    life.node->trigger_schedule({ref(id)}, [&](auto fired) {
      ASSERT_TRUE(fired.ok()) << fired.status();
      answer = *std::move(fired);
    });
    life.thread.run();
    return answer;
  }
  std::vector<model::RunState> runs() {
    std::vector<model::RunState> found;
    for (uint16_t shard = 0; shard < 2; ++shard) {
      const auto range = store::keys::runs(ShardId(shard));
      const auto visit = [&](std::string_view, std::string_view value) {
        found.emplace_back().ParseFromArray(value.data(), static_cast<int>(value.size()));
        return true;
      };
      EXPECT_TRUE(store.scan(range.begin, range.end, visit).ok());
    }
    return found;
  }
  size_t rows(char table) {
    size_t found = 0;
    for (uint16_t shard = 0; shard < 2; ++shard) {
      auto range = store::keys::schedules(ShardId(shard));
      range.begin[0] = range.end[0] = table;
      const auto visit = [&](std::string_view, std::string_view) { return ++found > 0; };
      EXPECT_TRUE(store.scan(range.begin, range.end, visit).ok());
    }
    return found;
  }

  store::MemoryStore store;
};

// Two shards: some of these and their runs live together, and some apart.
TEST_F(ScheduleHostTest, RunsAreStartedInWhicheverShardTheyLive) {
  Life life(&store);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(create(life, absl::StrCat("schedule-", i), kHour).ok());
  }
  life.thread.run_for(kHour);
  EXPECT_EQ(runs().size(), 20U);
  EXPECT_EQ(rows('O'), 0U) << "no letter is left";
  EXPECT_TRUE(absl::IsAlreadyExists(create(life, "schedule-3", kHour)));
  for (int i = 0; i < 20; ++i) {
    const auto schedule = describe(life, absl::StrCat("schedule-", i));
    EXPECT_EQ(schedule.fires(), 1);
    ASSERT_EQ(schedule.open_size(), 1);
    EXPECT_TRUE(schedule.open(0).is_started());
  }
  for (const auto& run : runs()) EXPECT_EQ(run.schedule().fire(), 1);
}

TEST_F(ScheduleHostTest, TheEndOfARunIsHeardOf) {
  Life life(&store);
  ASSERT_TRUE(create(life, "nightly", kHour).ok());
  const auto fired = trigger(life, "nightly");
  EXPECT_EQ(fired.outcome, Outcome::kStarted);
  EXPECT_EQ(trigger(life, "nightly").reason, schedule::kOverlaps);
  TerminateRequest stop;
  stop.run = {NamespaceNum(1), fired.workflow_id, ""};
  life.node->terminate_workflow(stop, [](auto done) { ASSERT_TRUE(done.ok()); });
  life.thread.run();
  EXPECT_EQ(describe(life, "nightly").open_size(), 0);
  EXPECT_EQ(trigger(life, "nightly").outcome, Outcome::kStarted);
  EXPECT_EQ(rows('O'), 0U);
}

// A Temporal run is asked to cancel; only its code can end it.
TEST_F(ScheduleHostTest, AnotherFlavourIsCanceledInItsOwnWay) {
  Life life(&store);
  ASSERT_TRUE(create(life, "nightly", kHour, model::OVERLAP_CANCEL_OTHER).ok());
  const auto first = trigger(life, "nightly");
  EXPECT_EQ(trigger(life, "nightly").outcome, Outcome::kStarted);
  for (const auto& run : runs()) {
    EXPECT_EQ(run.cancel_requested(), run.run_id() == first.run_id);
    EXPECT_EQ(run.status(), model::RUNNING);
  }
}

TEST_F(ScheduleHostTest, WhoWaitsForAStartIsAnsweredWhenTheServerStops) {
  Life life(&store);
  ASSERT_TRUE(create(life, "nightly", kHour).ok());
  std::vector<absl::Status> answers;
  const auto ask = [&] {
    life.node->trigger_schedule({ref("nightly")},
                                [&](auto fired) { answers.push_back(fired.status()); });
  };
  ask();
  life.node->close([] {});
  life.thread.run();
  ask();
  life.thread.run();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(absl::IsUnavailable(answers[0])) << answers[0];
}

TEST_F(ScheduleHostTest, ADeletedNamespaceLeavesNothingOfThem) {
  Life life(&store);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(create(life, absl::StrCat("schedule-", i), kMinute).ok());
  }
  life.thread.run_for(kMinute);
  life.node->delete_namespace("default", [](auto deleted) { ASSERT_TRUE(deleted.ok()); });
  life.thread.run_for(10 * kMinute);
  for (const char table : {'I', 'J', 'H', 'O', 'W', 'R'}) EXPECT_EQ(rows(table), 0U) << table;
  EXPECT_FALSE(create(life, "late", kMinute).ok()) << "nobody can enter it any more";
}

TEST_F(ScheduleHostTest, AListTakesNamesFromAllShards) {
  Life life(&store);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(create(life, absl::StrCat("schedule-", i), kHour).ok());
    life.thread.run_for(kMillisecond);
  }
  DirectCommits commits(&store);
  const ScheduleList list(&store, &commits, 2);
  EXPECT_EQ(list.count(NamespaceNum(1)), 10);
  EXPECT_EQ(list.count(NamespaceNum(2)), 0);
  EXPECT_TRUE(list.has_fewer(NamespaceNum(1), 11));
  EXPECT_FALSE(list.has_fewer(NamespaceNum(1), 10));
  ListSchedules request;
  request.ns = NamespaceNum(1);
  request.max = 4;
  request.matches = [](const model::Schedule& schedule) {
    return schedule.schedule_id() != "schedule-7";
  };
  std::vector<std::string> found;
  do {
    list.list(request, [&](auto page) {
      for (const auto& schedule : page->schedules) found.push_back(schedule.schedule_id());
      request.before = page->next;
    });
  } while (!request.before.empty());
  EXPECT_EQ(found, (std::vector<std::string>{"schedule-9", "schedule-8", "schedule-6", "schedule-5",
                                             "schedule-4", "schedule-3", "schedule-2", "schedule-1",
                                             "schedule-0"}));
}

}  // namespace
}  // namespace fairlead::shard
