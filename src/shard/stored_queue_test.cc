// A queue comes back from its rows as it was, versions included.

#include "shard/stored_queue.h"

#include <memory>

#include "base/random.h"
#include "gtest/gtest.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

constexpr TimeNs kNow = 1'000'000 * kSecond;
const ShardId kShard(3);
const QueueName kQueue{NamespaceNum(7), model::ACTIVITY_TASK, "mails"};

struct Bench {
  void reopen() {
    queue = std::make_unique<StoredQueue>(&store, kShard, kQueue, queue::Settings{}, kNow);
  }
  void write(const store::WriteBatch& batch) { EXPECT_TRUE(store.write(batch).ok()); }
  // Numbers of places are used again after a restart; a task's own id is not.
  void add(int64_t id, const std::string& key, float weight, const queue::Stream& stream) {
    const auto place = queue->tasks().reserve(3, key, stream);
    model::TaskRow row;
    row.set_run(std::string(16, 'r'));
    row.set_scheduled_id(id);
    row.mutable_priority()->set_fairness_weight(weight);
    row.set_slot(stream.slot);
    store::WriteBatch batch;
    batch.put(task_row(kShard, kQueue, place), row.SerializeAsString());
    write(batch);
    queue::Task task;
    task.scheduled_id = id;
    task.weight = weight;
    queue->tasks().add(place, task, kNow);
  }
  std::optional<int64_t> start(const std::string& version) {
    const auto picked = queue->tasks().pick(kNow, version);
    if (!picked.has_value()) return std::nullopt;
    store::WriteBatch batch;
    batch.erase(task_row(kShard, kQueue, picked->place));
    queue->tasks().started(picked->place, kNow);
    queue->add_rows(&batch);
    write(batch);
    return picked->task.scheduled_id;
  }
  void route(const std::string& current, const std::string& ramping, uint32_t percent) {
    auto rules = queue->tasks().rules();
    rules.mutable_routing()->set_current(current);
    rules.mutable_routing()->set_ramping(ramping);
    rules.mutable_routing()->set_percent(percent);
    queue->tasks().set_rules(std::move(rules), kNow);
    store::WriteBatch batch;
    batch.put(store::keys::queue_rules(kShard, kQueue), queue->tasks().rules().SerializeAsString());
    queue->add_rows(&batch);
    write(batch);
  }

  store::MemoryStore store;
  std::unique_ptr<StoredQueue> queue;
};

TEST(StoredQueue, ARestartAfterEveryStepChangesNothingForAnyVersion) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    Bench lasting;
    Bench restarted;
    lasting.reopen();
    restarted.reopen();
    const auto version = [&] { return std::string(random.chance(0.4) ? "v1" : "v2"); };
    for (int step = 0; step < 250; ++step) {
      const auto what = random.below(20);
      if (what < 10) {
        const std::string key(1, static_cast<char>('a' + random.below(5)));
        const auto weight = static_cast<float>(1 + random.below(30)) / 10;
        queue::Stream stream{random.chance(0.5) ? version() : "",
                             static_cast<uint8_t>(1 + random.below(100))};
        for (auto* bench : {&lasting, &restarted}) bench->add(step, key, weight, stream);
      } else if (what < 19) {
        const auto of = random.chance(0.3) ? "" : version();
        const auto expected = lasting.start(of);
        ASSERT_EQ(restarted.start(of), expected) << "seed " << seed << " step " << step;
      } else {
        const auto current = random.chance(0.3) ? "" : version();
        const auto percent = static_cast<uint32_t>(random.below(101));
        for (auto* bench : {&lasting, &restarted}) bench->route(current, "v2", percent);
      }
      restarted.reopen();
      ASSERT_EQ(restarted.queue->tasks().size(), lasting.queue->tasks().size());
    }
    EXPECT_EQ(restarted.queue->all_tasks().size(),
              static_cast<size_t>(restarted.queue->tasks().size()));
  }
}

// Rows hold what it decides.
TEST(StoredQueue, TheSlotOfAWorkflowIsDecidedForEver) {
  EXPECT_EQ(ramp_slot("order-1"), 28);
  EXPECT_EQ(ramp_slot(""), 32);
}

}  // namespace
}  // namespace fairlead::shard
