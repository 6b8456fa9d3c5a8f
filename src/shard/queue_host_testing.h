#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "shard/queue_host.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {

struct StoppedClock final : Clock {
  TimeNs now() override { return time; }
  TimeNs time = 1000 * kMinute;
};

inline const NamespaceNum kNs(7);
inline const QueueAddress kMails{{kNs, model::ACTIVITY_TASK, "mails"}, "mails"};

// A host whose tasks start as soon as a poll is there for them.
class QueueHostTest : public testing::Test {
 protected:
  static model::Priority level(int32_t key) {
    model::Priority priority;
    priority.set_priority_key(key);
    return priority;
  }

  // A task that finds nobody waits; gives whether somebody took it at once.
  bool bring(const model::Priority& priority, const queue::Stream& stream = {}) {
    store::WriteBatch batch;
    auto offered = host.offer(kMails, priority, stream, std::nullopt, {&batch});
    if (offered.poll != nullptr) {
      takers.push_back(offered.poll->number);
      return true;
    }
    queue::Task task;
    task.created_ns = clock.time;
    model::TaskRow row;
    row.set_run(std::string(16, 'r'));
    row.set_created_ns(clock.time);
    row.set_slot(stream.slot);
    row.set_type(stream.type.value());
    store::WriteBatch rows;
    rows.put(task_row(ShardId(3), kMails.name, *offered.place), row.SerializeAsString());
    EXPECT_TRUE(store.write(rows).ok());
    host.add(kMails, *offered.place, task);
    return false;
  }
  // A task of a key that waits, with its row.
  queue::Place bring_row(const std::string& key, int64_t id) {
    auto priority = level(3);
    priority.set_fairness_key(key);
    store::WriteBatch batch;
    const auto offered = host.offer(kMails, priority, {}, std::nullopt, {&batch});
    model::TaskRow row;
    row.set_run(std::string(16, 'r'));
    row.set_scheduled_id(id);
    row.set_created_ns(clock.time + id);
    *row.mutable_priority() = priority;
    batch.put(store::keys::task(ShardId(3), kMails.name, 3, offered.place->key, offered.place->seq),
              row.SerializeAsString());
    EXPECT_TRUE(store.write(batch).ok());
    queue::Task task;
    task.scheduled_id = id;
    task.created_ns = row.created_ns();
    host.add(kMails, *offered.place, task);
    return *offered.place;
  }
  std::vector<int64_t> ids_of(const std::string& key) {
    std::vector<int64_t> ids;
    for (const auto& waiting : host.tasks_of(kMails, key)) ids.push_back(waiting.task.scheduled_id);
    return ids;
  }
  std::optional<queue::KeyView> view_of(const std::string& key) {
    KeysRequest request;
    request.by = KeysRequest::By::kNamed;
    request.named = {key};
    const auto keys = host.list_keys(kMails, request).keys;
    return keys.empty() ? std::nullopt : std::optional(keys.front());
  }
  void set_poller_order(model::QueueRules::PollerOrder order) {
    ChangeRules change{{kNs, model::ACTIVITY_TASK, "mails"}, [order](auto& rules, TimeNs) {
                         rules.set_poller_order(order);
                         return absl::OkStatus();
                       }};
    ASSERT_TRUE(host.change_rules(kMails, change).ok());
  }
  // Who gets a task that comes now.
  uint64_t taker() {
    store::WriteBatch batch;
    const auto offered = host.offer(kMails, level(3), {}, std::nullopt, {&batch});
    return offered.poll == nullptr ? 0 : offered.poll->number;
  }
  void poll(const std::string& version = "", bool takes_unversioned = false,
            queue::TypeListPtr types = nullptr) {
    auto one = std::make_unique<Poll>();
    one->request.version = version;
    one->request.takes_unversioned = takes_unversioned;
    one->request.types = std::move(types);
    one->number = ++polls;
    one->request.ns = kNs;
    one->request.kind = model::ACTIVITY_TASK;
    one->request.queue.set_name("mails");
    one->request.hold_until = clock.time + kMinute;
    one->reply = Reply<ActivityTask>([](absl::StatusOr<ActivityTask>) {});
    host.poll(std::move(one));
  }
  DispatchCounts counted() {
    const auto all = host.metrics(10, 10);
    return all.empty() ? DispatchCounts{} : all.front().dispatches;
  }

  StoppedClock clock;
  store::MemoryStore store;
  Alarms alarms;
  queue::Settings settings;
  uint64_t polls = 0;
  int started = 0;
  std::vector<uint64_t> takers;
  std::vector<std::string> versions;  // that started tasks were pinned to
  std::vector<queue::Place> places;   // of started tasks
  std::shared_ptr<AdmissionDesk> desk = std::make_shared<AdmissionDesk>(
      std::make_shared<admission::Policies>(),
      AdmissionDesk::Env{.clock = &clock,
                         .namespace_name = [](NamespaceNum) { return "default"; },
                         .owner_of = [](const QueueName&) { return ShardId(3); },
                         .look_again = [](const QueueName&) {}});
  QueueHost host{QueueHost::Env{
      .shard = ShardId(3),
      .store = &store,
      .clock = &clock,
      .alarms = &alarms,
      .dispatch =
          [this](PollPtr poll, const QueueAddress& queue, const queue::Waiting& waiting) {
            ++started;
            takers.push_back(poll->number);
            versions.push_back(waiting.place.stream.version);
            places.push_back(waiting.place);
            store::WriteBatch batch;
            batch.erase(task_row(ShardId(3), queue.name, waiting.place));
            host.started(queue, waiting, &batch);
            EXPECT_TRUE(store.write(batch).ok());
          },
      .dispatch_query = [](PollPtr, const QueueAddress&, const DirectQuery&) {},
      .sticky_lost = [](const queue::Task&) {},
      .write = [this](const store::WriteBatch& batch) { EXPECT_TRUE(store.write(batch).ok()); },
      .settings = [this](const QueueName&) { return settings; },
      .desk = desk.get(),
  }};
};

}  // namespace fairlead::shard
