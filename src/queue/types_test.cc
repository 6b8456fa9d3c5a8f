// Workers that take some types only.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

TypeList list_of(const std::vector<std::string>& names) {
  std::vector<TaskType> types;
  for (const auto& name : names) types.push_back(task_type(name));
  return TypeList(std::move(types));
}

struct Fleet : QueueBench {
  using QueueBench::QueueBench;

  Place put(const std::string& type, const std::string& key = "k", uint32_t level = kDefaultLevel,
            const std::string& version = "") {
    return add(key, 0, level, {version, 0, task_type(type)});
  }
  // What a worker that takes these types may have, whichever comes first; -1: nothing.
  int64_t take(const std::vector<std::string>& types, const std::string& version = "") {
    const auto slot = queue->slot_of(list_of(types));
    std::vector<Source> sources;
    queue->find_sources(now, version, slot.has_value() ? 1U << *slot : 0, &sources);
    if (sources.empty()) return -1;
    const auto first =
        std::min_element(sources.begin(), sources.end(),
                         [](const Source& a, const Source& b) { return a.level < b.level; });
    const auto started = start(version, first->group);
    return static_cast<int64_t>(started->place.seq.value());
  }
};

int64_t number(const Place& place) { return static_cast<int64_t>(place.seq.value()); }

// DO NOT CHANGE: rows have it.
TEST(TaskType, IsAStableHashOfTheName) {
  EXPECT_EQ(task_type("greeter").value(), 8574653954956000190U);
  EXPECT_NE(task_type(""), TaskType());
}

TEST(TypeList, TakesWhatItNamesAndWhatSaysNoType) {
  const auto some = std::make_shared<const TypeList>(list_of({"b", "a", "b"}));
  EXPECT_EQ(some->size(), 2U);
  EXPECT_TRUE(takes(some, task_type("a")));
  EXPECT_FALSE(takes(some, task_type("c")));
  EXPECT_TRUE(takes(some, TaskType()));
  EXPECT_TRUE(takes(nullptr, task_type("c")));
  EXPECT_TRUE(is_same(some, std::make_shared<const TypeList>(list_of({"a", "b"}))));
  EXPECT_FALSE(is_same(some, nullptr));
}

// Nothing comes of types as long as no list has a slot: one line, one order.
TEST(Types, AreOneLineUntilTheyAreToldApart) {
  Fleet fleet;
  fleet.put("mail");
  fleet.put("charge");
  EXPECT_EQ(fleet.queue->targets(), 1U);
  EXPECT_EQ(fleet.take({"mail"}), 1);
  EXPECT_EQ(fleet.take({"mail"}), 2) << "who has no slot is asked by whoever hands it out";
  EXPECT_TRUE(fleet.disk.type_accounts.empty());
}

TEST(Types, WhatAListRefusesIsNotAmongItsSources) {
  Fleet fleet;
  const auto mail = fleet.put("mail");
  const auto charge = fleet.put("charge");
  const auto both = fleet.put("log");
  fleet.set_type_list(0, list_of({"mail", "log"}));
  fleet.set_type_list(1, list_of({"charge", "log"}));
  EXPECT_EQ(fleet.queue->size(), 3);
  EXPECT_EQ(fleet.queue->group_of(task_type("mail")), 2U);
  EXPECT_EQ(fleet.queue->group_of(task_type("charge")), 1U);
  EXPECT_EQ(fleet.queue->group_of(task_type("log")), 0U);
  EXPECT_EQ(fleet.queue->group_of(task_type("other")), 3U);
  EXPECT_EQ(fleet.queue->group_of(TaskType()), 0U);

  std::vector<int64_t> mails{fleet.take({"mail", "log"}), fleet.take({"mail", "log"})};
  std::sort(mails.begin(), mails.end());
  EXPECT_EQ(mails, (std::vector<int64_t>{number(mail), number(both)}));
  EXPECT_EQ(fleet.take({"mail", "log"}), -1);
  EXPECT_EQ(fleet.take({"charge", "log"}), number(charge));
  EXPECT_EQ(fleet.queue->size(), 0);
}

// New tasks go where those of their type are, and a task that nobody takes delays nobody.
TEST(Types, ATypeThatNobodyTakesWaitsAside) {
  Fleet fleet;
  const auto lost = fleet.put("lost");
  fleet.set_type_list(0, list_of({"mail"}));
  const auto next = fleet.put("lost");
  const auto mail = fleet.put("mail");
  EXPECT_EQ(fleet.take({"mail"}), number(mail));
  EXPECT_EQ(fleet.take({"mail"}), -1);
  // Somebody comes who takes it; and whoever takes all may have it anyway.
  fleet.set_type_list(1, list_of({"lost"}));
  EXPECT_EQ(fleet.take({"lost"}), number(lost));
  EXPECT_EQ(fleet.take({"not", "known"}), number(next));
}

TEST(Types, AreTheSameAfterARestart) {
  Fleet fleet;
  for (int i = 0; i < 3; ++i) fleet.put("mail", "a"), fleet.put("charge", "b");
  fleet.set_type_list(3, list_of({"charge"}));
  EXPECT_EQ(fleet.take({"charge"}), 2);
  fleet.reopen();
  EXPECT_EQ(fleet.queue->slot_of(list_of({"charge"})), 3U);
  EXPECT_EQ(fleet.queue->size(), 5);
  EXPECT_EQ(fleet.take({"charge"}), 4);
  EXPECT_EQ(fleet.take({"charge"}), 6);
  EXPECT_EQ(fleet.take({"charge"}), -1);
  // Rules that an operator changes leave the lists alone.
  fleet.change_rules([](model::QueueRules& rules) {
    rules.Clear();
    rules.set_running_max(100);
  });
  EXPECT_EQ(fleet.queue->slot_of(list_of({"charge"})), 3U);
  EXPECT_EQ(fleet.take({"charge"}), -1);
  EXPECT_EQ(fleet.take({"mail"}), 1);
}

// Inside a group keys get their shares, whatever waits beside it.
TEST(Types, KeysShareAGroupByTheirWeights) {
  Fleet fleet;
  fleet.set_type_list(0, list_of({"mail"}));
  fleet.change_rules([](model::QueueRules& rules) { (*rules.mutable_weights())["heavy"] = 3; });
  for (int i = 0; i < 400; ++i) {
    fleet.put("mail", "heavy");
    fleet.put("mail", "light");
    fleet.put("charge", "heavy");
  }
  int heavy = 0;
  for (int i = 1; i <= 200; ++i) {
    heavy += fleet.start("", 0)->place.key == "heavy" ? 1 : 0;
    EXPECT_NEAR(heavy, 0.75 * i, 1) << i;
  }
}

// A cap, a pause and a limit of a key count all of its types.
TEST(Types, CapsAndPausesOfAKeyCountAllOfItsTypes) {
  Fleet fleet;
  fleet.set_type_list(0, list_of({"mail"}));
  fleet.put("mail", "a");
  fleet.put("charge", "a");
  fleet.change_rules(
      [](model::QueueRules& rules) { (*rules.mutable_keys())["a"].set_running_max(1); });
  EXPECT_EQ(fleet.take({"mail"}), 1);
  EXPECT_FALSE(fleet.start("", 1).has_value());
  fleet.finish("a");
  fleet.change_rules([](model::QueueRules& rules) {
    (*rules.mutable_keys())["a"].mutable_pause()->set_reason("later");
  });
  EXPECT_FALSE(fleet.start("", 1).has_value());
  EXPECT_EQ(fleet.queue->key_view("a", fleet.now)->waiting, 1);
  fleet.change_rules([](model::QueueRules& rules) { rules.clear_keys(); });
  EXPECT_TRUE(fleet.start("", 1).has_value());
}

// A task that is out when types are told apart comes back to where it belongs then, and its key has
// paid nothing.
TEST(Types, APickThatIsPutBackFindsItsNewPlace) {
  Fleet fleet;
  const auto charge = fleet.put("charge", "a");
  fleet.put("mail", "a");
  const auto picked = fleet.queue->pick(fleet.now);
  ASSERT_EQ(picked->place, charge);
  fleet.set_type_list(0, list_of({"mail"}));
  fleet.queue->put_back(picked->place, fleet.now);
  EXPECT_EQ(fleet.queue->size(), 2);
  EXPECT_EQ(fleet.take({"mail"}), 2);
  EXPECT_EQ(fleet.take({"mail"}), -1);
  EXPECT_EQ(number(fleet.start("", 1)->place), number(charge));
}

TEST(Types, OfAVersionAreToldApartAsWell) {
  Fleet fleet;
  const auto mail = fleet.put("mail", "a", kDefaultLevel, "v1");
  const auto charge = fleet.put("charge", "a", kDefaultLevel, "v1");
  fleet.set_type_list(0, list_of({"charge"}));
  EXPECT_EQ(fleet.take({"charge"}), -1);
  EXPECT_EQ(fleet.take({"charge"}, "v1"), number(charge));
  EXPECT_EQ(fleet.take({"charge"}, "v1"), -1);
  const auto views = fleet.queue->target_views();
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[1].version, "v1");
  EXPECT_EQ(views[1].waiting, 1);
  EXPECT_EQ(number(fleet.start("v1", 1)->place), number(mail));
}

// Lists come and go for as long as a queue lives; what is left of them is bounded by what waits.
TEST(Types, PlacesOfGroupsAreUsedAgain) {
  Fleet fleet;
  for (int round = 0; round < 200; ++round) {
    const auto type = "t" + std::to_string(round);
    fleet.set_type_list(static_cast<uint32_t>(round) % TaskQueue::kTypeListsMax, list_of({type}));
    fleet.put(type, "a");
    fleet.put("other", "b");
    while (fleet.take({}) != -1) continue;
  }
  EXPECT_LE(fleet.queue->targets(), 8U);
  EXPECT_TRUE(fleet.disk.type_accounts.empty());
  EXPECT_EQ(fleet.queue->size(), 0);
}

}  // namespace
}  // namespace fairlead::queue
