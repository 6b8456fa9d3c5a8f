// What every store must do, whatever it is made of.

#include "store/store.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "store/memory_store.h"
#include "store/rocksdb_store.h"
#include "store/simulated_store.h"
#include "store/store_testing.h"

namespace fairlead::store {
namespace {

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Store>(const TemporaryFolder&)> open;
};

std::unique_ptr<Store> open_on_disk(const TemporaryFolder& folder) {
  auto store = open_rocksdb(folder.path(), {});
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  return store.ok() ? *std::move(store) : nullptr;
}

class EveryStore : public testing::TestWithParam<Kind> {
 protected:
  TemporaryFolder folder_;
  const std::unique_ptr<Store> store_ = GetParam().open(folder_);
};

INSTANTIATE_TEST_SUITE_P(Stores, EveryStore,
                         testing::Values(Kind{"RocksDb", open_on_disk},
                                         Kind{"Memory",
                                              [](const TemporaryFolder&) {
                                                return std::make_unique<MemoryStore>();
                                              }},
                                         Kind{"Simulated",
                                              [](const TemporaryFolder&) {
                                                return std::make_unique<SimulatedStore>();
                                              }}),
                         [](const auto& info) { return info.param.name; });

// Group commit answers reads of its own writes while the disk is still busy with them.
TEST_P(EveryStore, AWriteIsVisibleBeforeItIsSynced) {
  ASSERT_OK(store_->write(put("a", "1")));
  EXPECT_EQ(*store_->get("a"), "1");
  EXPECT_EQ(*store_->get("b"), std::nullopt);
  ASSERT_OK(store_->sync());
  EXPECT_EQ(*store_->get("a"), "1");
}

TEST_P(EveryStore, AnEmptyValueIsNotAMissingRow) {
  ASSERT_OK(store_->write(put("a", "")));
  EXPECT_EQ(*store_->get("a"), "");
}

TEST_P(EveryStore, TheOrderWithinABatchDecides) {
  WriteBatch batch;
  batch.put("a", "1");
  batch.erase("a");
  batch.put("b", "1");
  batch.erase_range("a", "c");
  batch.put("b", "2");
  batch.put("c", "kept: a range does not hold its end");
  ASSERT_OK(store_->write(batch));
  EXPECT_EQ(rows(*store_, "a", "c"), (Rows{{"b", "2"}}));
  EXPECT_NE(*store_->get("c"), std::nullopt);
}

TEST_P(EveryStore, ErasingWhatIsNotThereIsFine) {
  WriteBatch batch;
  batch.erase("nothing");
  batch.erase_range("x", "y");
  batch.erase_range("y", "x");
  ASSERT_OK(store_->write(batch));
  ASSERT_OK(store_->write(WriteBatch()));
  ASSERT_OK(store_->sync());
}

TEST_P(EveryStore, AScanVisitsItsRangeInOrderUntilToldToStop) {
  for (const char* key : {"c", "a", "d", "b", "e"}) ASSERT_OK(store_->write(put(key, key)));
  EXPECT_EQ(rows(*store_, "b", "d"), (Rows{{"b", "b"}, {"c", "c"}}));
  EXPECT_EQ(rows(*store_, "bb", "dd"), (Rows{{"c", "c"}, {"d", "d"}}));
  EXPECT_EQ(rows(*store_, "d", "b"), Rows());
  EXPECT_EQ(rows(*store_, "c", "c"), Rows());

  std::string seen;
  const auto take_two = [&](std::string_view key, std::string_view) {
    seen += key;
    return seen.size() < 2;
  };
  ASSERT_OK(store_->scan("a", "z", take_two));
  EXPECT_EQ(seen, "ab");
}

TEST_P(EveryStore, AReverseScanStartsJustBelowItsEnd) {
  for (const char* key : {"c", "a", "d", "b", "e"}) ASSERT_OK(store_->write(put(key, key)));
  std::string seen;
  const auto take_all = [&](std::string_view key, std::string_view) {
    seen += key;
    return true;
  };
  ASSERT_OK(store_->scan_reverse("b", "d", take_all));
  EXPECT_EQ(seen, "cb");
  ASSERT_OK(store_->scan_reverse("d", "b", take_all));
  EXPECT_EQ(seen, "cb");

  const auto take_one = [&](std::string_view key, std::string_view) {
    seen += key;
    return false;
  };
  ASSERT_OK(store_->scan_reverse("", "z", take_one));
  EXPECT_EQ(seen, "cbe");
}

// A shard that starts reads a run's rows while it walks over its wake-ups.
TEST_P(EveryStore, AVisitorMayRead) {
  ASSERT_OK(store_->write(put("a", "b")));
  ASSERT_OK(store_->write(put("b", "found")));
  ASSERT_OK(store_->scan("a", "b", [&](std::string_view, std::string_view value) {
    EXPECT_EQ(*store_->get(value), "found");
    return true;
  }));
}

TEST_P(EveryStore, KeysAndValuesAreAnyBytes) {
  const std::string key("k\0\xff\n", 4);
  const std::string value("\0\xfe", 2);
  ASSERT_OK(store_->write(put(key, value)));
  ASSERT_OK(store_->write(put("k", "shorter")));
  EXPECT_EQ(*store_->get(key), value);
  EXPECT_EQ(rows(*store_, "k", "l"), (Rows{{"k", "shorter"}, {key, value}}));
  EXPECT_EQ(*store_->get("k"), "shorter");
}

// Thousands of random batches beside the simplest thing that could be right.
TEST_P(EveryStore, BehavesLikeASortedMap) {
  Random random(3);
  std::map<std::string, std::string> model;
  const auto any_key = [&] { return absl::StrCat("key", random.below(200)); };
  for (int step = 0; step < 2'000; ++step) {
    WriteBatch batch;
    for (uint64_t op = random.below(5); op > 0; --op) {
      const std::string key = any_key();
      if (random.chance(0.7)) {
        const std::string value = absl::StrCat(random.next());
        batch.put(key, value);
        model[key] = value;
      } else if (random.chance(0.8)) {
        batch.erase(key);
        model.erase(key);
      } else {
        const std::string end = key + "9";
        batch.erase_range(key, end);
        model.erase(model.lower_bound(key), model.lower_bound(end));
      }
    }
    ASSERT_OK(store_->write(batch));
    if (random.chance(0.05)) ASSERT_OK(store_->sync());
    const std::string key = any_key();
    const auto expected = model.find(key);
    ASSERT_EQ(*store_->get(key),
              expected == model.end() ? std::nullopt : std::optional(expected->second));
  }
  EXPECT_EQ(rows(*store_, "key", "l"), Rows(model.begin(), model.end()));
}

}  // namespace
}  // namespace fairlead::store
