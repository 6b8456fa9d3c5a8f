#include "shard/wakeups.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

std::string run_key(uint64_t number) {
  std::string key(16, '\0');
  for (int i = 0; i < 8; ++i) key[15 - i] = static_cast<char>(number >> (8 * i));
  return key;
}

// Time must neither come early nor forget anyone, however few wake-ups fit into memory and however
// often the process starts anew.
TEST(Wakeups, GiveOutEveryRunWhenItsTimeHasComeAndNeverBefore) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    store::MemoryStore store;
    const size_t window = 1 + random.below(6);
    auto wakeups = std::make_unique<Wakeups>(ShardId(3), &store, window);
    std::set<std::pair<TimeNs, std::string>> armed;
    TimeNs now = 1000 * kSecond;
    uint64_t number = 0;
    for (int step = 0; step < 500; ++step) {
      store::WriteBatch batch;
      const auto choice = random.below(10);
      if (choice < 4) {
        const TimeNs at = now + static_cast<TimeNs>(random.below(300)) * kSecond;
        const auto key = run_key(++number);
        wakeups->arm(at, key, &batch);
        armed.insert({at, key});
      } else if (choice < 6 && !armed.empty()) {
        auto victim = armed.begin();
        std::advance(victim, random.below(armed.size()));
        wakeups->disarm(victim->first, victim->second, &batch);
        armed.erase(victim);
      } else if (choice < 7) {
        wakeups = std::make_unique<Wakeups>(ShardId(3), &store, window);
      } else {
        // As the shard does: sleep until told, then take what is due.
        now = std::max(
            now, std::min(wakeups->next(), now + static_cast<TimeNs>(random.below(20)) * kSecond));
        for (auto due = wakeups->take_due(now, 3); !due.empty(); due = wakeups->take_due(now, 3)) {
          for (const auto& one : due) {
            ASSERT_LE(one.at, now) << "never early";
            ASSERT_EQ(armed.erase({one.at, one.run}), 1u) << "only what is armed, and once";
            wakeups->disarm(one.at, one.run, &batch);
          }
        }
        ASSERT_TRUE(armed.empty() || armed.begin()->first > now)
            << "seed " << seed << ": somebody was forgotten";
      }
      ASSERT_TRUE(store.write(batch).ok());
    }
  }
}

}  // namespace
}  // namespace fairlead::shard
