// Workers that take some types only: who gets what, and what a queue remembers of it.

#include <algorithm>

#include "shard/queue_host_testing.h"

namespace fairlead::shard {
namespace {

queue::TypeListPtr only(const std::vector<std::string>& names) {
  std::vector<queue::TaskType> types;
  for (const auto& name : names) types.push_back(queue::task_type(name));
  return std::make_shared<const queue::TypeList>(std::move(types));
}

class QueueTypesTest : public QueueHostTest {
 protected:
  void SetUp() override { desk->restored(); }

  bool bring_type(const std::string& type, const std::string& key = "", int32_t at = 3,
                  const std::string& version = "") {
    auto priority = level(at);
    priority.set_fairness_key(key);
    return bring(priority, {version, 0, queue::task_type(type)});
  }
  void poll_for(const std::vector<std::string>& types, const std::string& version = "",
                bool takes_unversioned = false) {
    poll(version, takes_unversioned, types.empty() ? nullptr : only(types));
  }
  // The types of the tasks that were handed out from the backlog.
  std::vector<std::string> types_started() const {
    std::vector<std::string> names;
    for (const auto& place : places) {
      for (const char* name : {"mail", "charge", "log", "lost"}) {
        if (queue::task_type(name) == place.stream.type) names.emplace_back(name);
      }
    }
    return names;
  }
  model::QueueRules rules() {
    model::QueueRules rules;
    const auto row = *store.get(store::keys::queue_rules(ShardId(3), kMails.name));
    if (row.has_value()) rules.ParseFromString(*row);
    return rules;
  }
  // What a crash and a restart leave.
  void forget_everything() {
    host.answer_all_polls();
    other.emplace(QueueHost::Env{
        .shard = ShardId(3),
        .store = &store,
        .clock = &clock,
        .alarms = &alarms,
        .dispatch =
            [this](PollPtr poll, const QueueAddress&, const queue::Waiting& waiting) {
              takers.push_back(poll->number);
              places.push_back(waiting.place);
            },
        .dispatch_query = [](PollPtr, const QueueAddress&, const DirectQuery&) {},
        .sticky_lost = [](const queue::Task&) {},
        .write = [this](const store::WriteBatch& batch) { EXPECT_TRUE(store.write(batch).ok()); },
        .settings = [this](const QueueName&) { return settings; },
        .desk = desk.get(),
    });
  }

  std::optional<QueueHost> other;
};

// The gap that this closes: a worker that does not know a type failed its task.
TEST_F(QueueTypesTest, APollGetsOnlyTheTypesThatItTakes) {
  bring_type("charge");
  bring_type("mail");
  poll_for({"mail"});
  EXPECT_EQ(types_started(), std::vector<std::string>{"mail"});
  poll_for({"mail"});
  EXPECT_EQ(host.parked(), 1U);
  EXPECT_EQ(host.backlog(kMails), 1);
  poll_for({"charge", "log"});
  EXPECT_EQ(types_started(), (std::vector<std::string>{"mail", "charge"}));
  EXPECT_EQ(host.backlog(kMails), 0);
}

TEST_F(QueueTypesTest, WithoutAnOffendingTaskNothingIsToldApart) {
  for (int i = 0; i < 3; ++i) bring_type("mail"), bring_type("log");
  for (int i = 0; i < 3; ++i) {
    poll_for({"mail", "log"});
    poll_for({"log", "mail", "x"});
  }
  EXPECT_EQ(started, 6);
  EXPECT_EQ(rules().type_lists_size(), 0);
  EXPECT_EQ(types_started(),
            (std::vector<std::string>{"mail", "log", "mail", "log", "mail", "log"}));
}

// Schedule and start in one step: the poll that has waited longest of those that take it.
TEST_F(QueueTypesTest, ANewTaskGoesToTheLongestWaitingPollThatTakesIt) {
  poll_for({"mail"});
  poll_for({"charge"});
  poll_for({"mail", "charge"});
  poll_for({});
  EXPECT_TRUE(bring_type("charge"));
  EXPECT_TRUE(bring_type("charge"));
  EXPECT_TRUE(bring_type("lost"));
  EXPECT_FALSE(bring_type("lost"));
  bring_type("mail");
  EXPECT_EQ(takers, (std::vector<uint64_t>{2, 3, 4, 1})) << "what nobody takes is in nobody's way";
  EXPECT_EQ(host.backlog(kMails), 1);
}

// One that waits has a better claim than a new one, of the types that the poll takes.
TEST_F(QueueTypesTest, ATypeThatNobodyTakesWaitsForSomebodyWhoDoes) {
  for (int i = 0; i < 3; ++i) bring_type("lost");
  poll_for({"mail"});
  poll_for({"mail"});
  EXPECT_TRUE(bring_type("mail"));
  EXPECT_TRUE(bring_type("mail"));
  EXPECT_EQ(host.backlog(kMails), 3);
  poll_for({"lost"});
  poll_for({});
  poll_for({"lost", "mail"});
  EXPECT_EQ(types_started(), (std::vector<std::string>{"lost", "lost", "lost"}));
}

// The queue opens again, or a limit lets go: everyone who can be served is, whoever waits longest
// first.
TEST_F(QueueTypesTest, APauseThatEndsServesEveryKindOfPoll) {
  const auto pause = [&](bool is_paused) {
    ChangeRules change{{kNs, model::ACTIVITY_TASK, "mails"}, [is_paused](auto& rules, TimeNs) {
                         is_paused ? (void)rules.mutable_pause() : rules.clear_pause();
                         return absl::OkStatus();
                       }};
    ASSERT_TRUE(host.change_rules(kMails, change).ok());
  };
  pause(true);
  bring_type("mail");
  bring_type("charge");
  bring_type("lost");
  poll_for({"log"});
  poll_for({"charge"});
  poll_for({"mail"});
  poll_for({"mail"});
  EXPECT_EQ(started, 0);
  pause(false);
  EXPECT_EQ(takers, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(host.parked(), 2U);
}

// The most urgent level counts, whatever group it is in; among equals each has its turn.
TEST_F(QueueTypesTest, APollTakesTheMostUrgentAndFromEachGroupInTurn) {
  bring_type("charge");
  poll_for({"mail"});
  bring_type("mail");
  for (int i = 0; i < 3; ++i) {
    bring_type("mail");
    bring_type("charge");
    bring_type("lost");
  }
  bring_type("lost", "", 1);
  bring_type("charge", "", 2);
  poll_for({"charge"});
  EXPECT_EQ(places.back().level, 2U);
  places.clear();
  for (int i = 0; i < 8; ++i) poll_for({});
  const auto order = types_started();
  EXPECT_EQ(order[0], "lost") << "level 1";
  for (size_t at = 1; at + 1 < order.size(); ++at) EXPECT_NE(order[at], order[at + 1]) << at;
}

// A key's older task goes before its newer ones, and a poll that was refused costs nobody a turn.
TEST_F(QueueTypesTest, KeysStayFairInsideOneType) {
  for (int i = 0; i < 30; ++i) {
    for (const char* key : {"a", "b", "c"}) {
      bring_type("charge", key);
      bring_type("mail", key);
    }
  }
  std::vector<int> counts(3);
  for (int i = 1; i <= 60; ++i) {
    poll_for({i % 2 == 1 ? "mail" : "charge"});
    ASSERT_EQ(static_cast<int>(places.size()), i);
    const auto& key = places.back().key;
    if (i % 2 == 1) ++counts[static_cast<size_t>(key[0] - 'a')];
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()) -
                  *std::min_element(counts.begin(), counts.end()),
              1);
  }
  for (const char* key : {"a", "b", "c"}) {
    std::vector<TaskSeq> mails;
    for (const auto& place : places) {
      if (place.key == key && place.stream.type == queue::task_type("mail")) {
        mails.push_back(place.seq);
      }
    }
    EXPECT_TRUE(std::is_sorted(mails.begin(), mails.end()));
  }
}

TEST_F(QueueTypesTest, BuildsAndTypesGoTogether) {
  bring_type("charge", "", 3, "v1");
  bring_type("mail", "", 3, "v1");
  bring_type("mail");
  poll_for({"mail"}, "v1");
  EXPECT_EQ(places.back().stream.version, "v1");
  EXPECT_EQ(types_started(), std::vector<std::string>{"mail"});
  poll_for({"mail"}, "v1");
  EXPECT_EQ(started, 1);
  poll_for({"mail"}, "v1", true);
  EXPECT_EQ(started, 2);
  EXPECT_EQ(places.back().stream.version, "");
  poll_for({"charge"}, "v1", true);
  EXPECT_EQ(types_started(), (std::vector<std::string>{"mail", "mail", "charge"}));
}

// Nothing of it is lost with the process: rows stay where they are, and the lists are a row.
TEST_F(QueueTypesTest, ARestartGoesOnWithTheSameGroups) {
  bring_type("charge");
  bring_type("mail");
  bring_type("charge");
  poll_for({"mail"});
  ASSERT_EQ(rules().type_lists_size(), 1);
  forget_everything();
  EXPECT_EQ(other->backlog(kMails), 2);
  const auto ask = [&](std::vector<std::string> types) {
    auto one = std::make_unique<Poll>();
    one->number = ++polls;
    one->request.ns = kNs;
    one->request.kind = model::ACTIVITY_TASK;
    one->request.queue.set_name("mails");
    one->request.hold_until = clock.time + kMinute;
    one->request.types = only(types);
    one->reply = Reply<ActivityTask>([](absl::StatusOr<ActivityTask>) {});
    other->poll(std::move(one));
  };
  ask({"mail"});
  EXPECT_EQ(other->parked(), 1U);
  ask({"charge"});
  EXPECT_EQ(types_started(), (std::vector<std::string>{"mail", "charge"}));
}

// Workers whose list nobody has any more do not keep types apart for ever.
TEST_F(QueueTypesTest, AListThatNobodyPollsWithIsForgotten) {
  bring_type("charge");
  poll_for({"mail"});
  ASSERT_EQ(rules().type_lists_size(), 1);
  clock.time += 11 * kMinute;
  host.sweep();
  EXPECT_EQ(rules().type_lists_size(), 1) << "nobody polls at all";
  poll_for({"charge"});
  EXPECT_EQ(started, 1);
  bring_type("charge");
  host.sweep();
  EXPECT_EQ(rules().type_lists_size(), 0);
  EXPECT_EQ(host.backlog(kMails), 1);
  poll_for({"charge"});
  EXPECT_EQ(started, 2);
}

// More kinds of workers than there are slots: a poll is still never given what it does not take.
TEST_F(QueueTypesTest, WithTooManyListsAPollLooksAtTheFirstOfEachGroup) {
  constexpr int kLists = 40;
  bring_type("lost");
  for (int i = 0; i < kLists; ++i) poll_for({"mail", "x" + std::to_string(i)});
  EXPECT_EQ(rules().type_lists_size(), static_cast<int>(queue::TaskQueue::kTypeListsMax));
  EXPECT_EQ(host.parked(), static_cast<size_t>(kLists));
  for (int i = 0; i < kLists; ++i) EXPECT_TRUE(bring_type("mail")) << i;
  EXPECT_EQ(host.backlog(kMails), 1);
  poll_for({"lost"});
  EXPECT_EQ(types_started(), std::vector<std::string>{"lost"});
  // Later the slots of those that have not come again are free.
  clock.time += 11 * kMinute;
  bring_type("lost");
  poll_for({"log"});
  const auto lists = rules().type_lists();
  EXPECT_TRUE(std::any_of(lists.begin(), lists.end(), [](const auto& list) {
    return list.types_size() == 1 && list.types(0) == queue::task_type("log").value();
  }));
}

TEST_F(QueueTypesTest, AnExplanationSaysThatNobodyTakesTheType) {
  bring_type("lost", "k");
  const auto waiting = host.tasks_of(kMails, "k");
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].place.stream.type, queue::task_type("lost"));
  const auto why = [&] {
    Explanation explanation;
    explanation.priority.set_fairness_key("k");
    host.explain(kMails, waiting[0].place, &explanation);
    return explanation;
  };
  EXPECT_FALSE(why().is_type_refused) << "nobody has polled";
  poll_for({"mail"});
  EXPECT_TRUE(why().is_type_refused);
  EXPECT_EQ(why().parked_polls, 0U);
  ChangeRules pause{{kNs, model::ACTIVITY_TASK, "mails"}, [](auto& rules, TimeNs) {
                      rules.mutable_pause();
                      return absl::OkStatus();
                    }};
  ASSERT_TRUE(host.change_rules(kMails, pause).ok());
  poll_for({"lost"});
  EXPECT_FALSE(why().is_type_refused);
  EXPECT_EQ(why().parked_polls, 1U);
}

// Operators see one queue.
TEST_F(QueueTypesTest, ViewsCountEveryType) {
  for (const char* type : {"mail", "charge", "lost"}) bring_type(type, "k");
  poll_for({"log"});
  ASSERT_EQ(rules().type_lists_size(), 1);
  const auto view = host.describe(kMails);
  ASSERT_EQ(view.targets.size(), 1U);
  EXPECT_EQ(view.targets[0].tasks.waiting, 3);
  EXPECT_EQ(view.targets[0].parked_polls, 1U);
  EXPECT_EQ(view.levels[2].waiting, 3);
  EXPECT_EQ(host.ready(kMails), 3);
  EXPECT_EQ(host.tasks_of(kMails, "k").size(), 3U);
  EXPECT_EQ(view_of("k")->waiting, 3);
  // A purge of the key erases rows and tells of them.
  for (const auto& waiting : host.tasks_of(kMails, "k")) {
    store::WriteBatch batch;
    batch.erase(task_row(ShardId(3), kMails.name, waiting.place));
    ASSERT_TRUE(store.write(batch).ok());
    host.remove(kMails, waiting.place);
  }
  EXPECT_EQ(host.backlog(kMails), 0);
}

}  // namespace
}  // namespace fairlead::shard
