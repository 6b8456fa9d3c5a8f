#include "store/rocksdb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "store/keys.h"
#include "store/store_folder.h"
#include "store/store_testing.h"

namespace fairlead::store {
namespace {

using testing::HasSubstr;

std::unique_ptr<RocksDbStore> must_open(const std::string& dir, RocksDbOptions options = {}) {
  auto store = open_rocksdb(dir, options);
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  return store.ok() ? *std::move(store) : nullptr;
}

absl::Status open_status(const std::string& dir) { return open_rocksdb(dir, {}).status(); }

// The database's files with this extension, in the order in which they were made.
std::vector<std::filesystem::path> files(const std::string& dir, const std::string& extension) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(dir + "/rocksdb")) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// ---- a store that is used as intended --------------------------------------------------------

TEST(RocksDbStore, KeepsItsRowsAndItsShardCountWhenReopened) {
  TemporaryFolder folder;
  for (int life = 0; life < 3; ++life) {
    const auto store = must_open(folder.path(), {.shard_count = static_cast<uint16_t>(16 + life)});
    EXPECT_EQ(store->shard_count(), 16) << "the count that the store was made with wins";
    EXPECT_EQ(rows(*store, "a", "b").size(), static_cast<size_t>(life));
    ASSERT_OK(store->write(put(absl::StrCat("a", life), "unsynced: closing the store syncs it")));
  }
}

// Rows of few runs and of their neighbours in several files, read in every kind of range: within a
// run, over several, from the middle of one. Filters must hide nothing.
TEST(RocksDbStore, FindsTheRowsOfARunInEveryFile) {
  TemporaryFolder folder;
  const auto store = must_open(folder.path(), {.memtable_bytes = size_t{1} << 16});
  Random random(7);
  const Rows own = rows(*store);  // what the store knows about itself
  std::map<std::string, std::string> model(own.begin(), own.end());
  const auto any_run = [&] {
    // With ends that have no successor of the same length.
    return std::string(15, random.chance(0.2) ? '\xff' : 'r') +
           static_cast<char>(random.chance(0.3) ? 0xff : random.below(12));
  };
  const auto any_key = [&]() -> std::string {
    const ShardId shard(static_cast<uint16_t>(random.chance(0.1) ? 0xffff : random.below(2)));
    const auto id = static_cast<int64_t>(random.below(20));
    switch (random.below(5)) {
      case 0:
        return keys::events(shard, any_run(), id);
      case 1:
        return keys::pending_timer(shard, any_run(), id);
      case 2:
        return keys::request_id(shard, any_run(), absl::StrCat(id));
      case 3:
        return keys::run(shard, any_run());
      default:
        return keys::letter(shard, any_run(), id);
    }
  };
  for (int step = 0; step < 4'000; ++step) {
    WriteBatch batch;
    const std::string key = any_key();
    if (random.chance(0.7)) {
      const std::string value = absl::StrCat(random.next(), std::string(200, 'v'));
      batch.put(key, value);
      model[key] = value;
    } else if (random.chance(0.8)) {
      batch.erase(key);
      model.erase(key);
    } else {
      const auto range = keys::events(ShardId(0), any_run());
      batch.erase_range(range.begin, range.end);
      model.erase(model.lower_bound(range.begin), model.lower_bound(range.end));
    }
    ASSERT_OK(store->write(batch));
    keys::Range range{any_key(), any_key()};
    if (random.chance(0.3)) range = keys::events(ShardId(0), any_run());
    if (random.chance(0.3)) range = keys::pending(ShardId(1), any_run());
    if (random.chance(0.3)) range.end = range.begin + "\x01";
    if (range.end < range.begin) std::swap(range.begin, range.end);
    ASSERT_EQ(rows(*store, range.begin, range.end),
              Rows(model.lower_bound(range.begin), model.lower_bound(range.end)));
  }
  EXPECT_GT(files(folder.path(), ".sst").size(), 1U);
}

// Shards write from their threads while the commit thread syncs. Tables small enough to be replaced
// many times make the log change under the sync's feet.
TEST(RocksDbStore, ThreadsMayWriteWhileAnotherSyncs) {
  constexpr RocksDbOptions kSmall{.memtable_bytes = size_t{1} << 18};
  constexpr int kThreads = 3;
  constexpr int kBatches = 2'000;
  TemporaryFolder folder;
  {
    const auto store = must_open(folder.path(), kSmall);
    std::atomic<int> running = kThreads;
    std::vector<std::thread> writers;
    for (int thread = 0; thread < kThreads; ++thread) {
      writers.emplace_back([&, thread] {
        for (int i = 0; i < kBatches; ++i) {
          const std::string key = absl::StrCat("row", thread, " ", i);
          EXPECT_TRUE(store->write(put(key, std::string(300, 'x'))).ok());
          EXPECT_TRUE(store->get(key)->has_value());
        }
        --running;
      });
    }
    while (running > 0) EXPECT_TRUE(store->sync().ok());
    for (std::thread& writer : writers) writer.join();
  }
  EXPECT_EQ(rows(*must_open(folder.path(), kSmall), "row", "s").size(),
            size_t{kThreads} * kBatches);
}

TEST(RocksDbStore, MakesAMissingFolderForItsOwnerOnly) {
  TemporaryFolder folder;
  const std::string dir = folder.path("some/where/store/");
  must_open(dir);
  struct stat found {};
  ASSERT_EQ(::stat(dir.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

// DO NOT CHANGE: the row that tells an older server that it is too old.
TEST(RocksDbStore, TheFormatRowHasItsGoldenBytes) {
  TemporaryFolder folder;
  const auto store = must_open(folder.path(), {.shard_count = 0x0102});
  EXPECT_EQ(**store->get("Mformat"), std::string("\x00\x00\x00\x02\x01\x02", 6));
}

TEST(RocksDbStore, AnUnfinishedInitialisationIsDoneAgain) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/rocksdb.new");
  write_file(folder.path() + "/rocksdb.new/MANIFEST-000001", "half of one");
  EXPECT_EQ(must_open(folder.path())->shard_count(), 64);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/rocksdb.new"));
}

// ---- folders that cannot be used -------------------------------------------------------------

TEST(RocksDbStore, RefusesANewerFormatAndNamesBothVersions) {
  TemporaryFolder folder;
  {
    const auto store = must_open(folder.path(), {.memtable_bytes = 1 << 16});
    ASSERT_OK(store->write(put(keys::meta("format"), std::string("\0\0\0\x09what", 8))));
    // Enough to move the row from the log into a table, as it would be in a store in use.
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(store->write(put(absl::StrCat("a", i), std::string(1 << 12, 'x'))));
    }
  }
  const absl::Status status = open_status(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has format version 9"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("knows versions up to 2"));
}

TEST(RocksDbStore, RefusesAnOlderFormatAndNamesBothVersions) {
  TemporaryFolder folder;
  {
    const auto store = must_open(folder.path(), {.memtable_bytes = 1 << 16});
    ASSERT_OK(store->write(put(keys::meta("format"), std::string("\0\0\0\x01\0\x10", 6))));
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(store->write(put(absl::StrCat("a", i), std::string(1 << 12, 'x'))));
    }
  }
  const absl::Status status = open_status(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has format version 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("writes version 2"));
}

TEST(RocksDbStore, RefusesAFolderInUseAndNamesTheProcess) {
  TemporaryFolder folder;
  auto store = must_open(folder.path());
  const absl::Status status = open_status(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(absl::StrCat("another process (pid ", ::getpid(), ") is using ", folder.path())));
  store.reset();
  EXPECT_TRUE(open_status(folder.path()).ok());
}

// Runs `body` in a child process and tells whether it returned true. The child must not get as far
// as RocksDB, whose threads do not survive a fork.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int result = 0;
  ::waitpid(child, &result, 0);
  return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

TEST(RocksDbStore, RefusesAFolderInUseByAnotherProcess) {
  TemporaryFolder folder;
  const auto store = must_open(folder.path());
  const std::string owner = absl::StrCat("(pid ", ::getpid(), ")");
  EXPECT_TRUE(in_child([&] {
    return std::string(open_status(folder.path()).message()).find(owner) != std::string::npos;
  }));
}

TEST(RocksDbStore, RefusesAFileInPlaceOfAFolder) {
  TemporaryFolder folder;
  write_file(folder.path(), "a file");
  const absl::Status status = open_status(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.path() + ": Not a directory"));
  EXPECT_EQ(open_status("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open_rocksdb(folder.path(), {.shard_count = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RocksDbStore, RefusesAFolderThatItMayNotWriteTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become someone else";
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path());
  ASSERT_EQ(::chmod(folder.path(".").c_str(), 0755), 0);
  EXPECT_TRUE(in_child([&] {
    if (::setuid(65534) != 0) return false;
    return open_status(folder.path()).code() == absl::StatusCode::kPermissionDenied &&
           open_status(folder.path("other")).code() == absl::StatusCode::kPermissionDenied;
  }));
}

// ---- damage ----------------------------------------------------------------------------------

// A closed store of 100 rows, all of them synced, in its log. Each row takes 512 bytes of it, so
// that 64 of them fill one of the log's blocks of 32 KiB exactly.
class DamagedStore : public testing::Test {
 protected:
  DamagedStore() {
    const auto store = must_open(dir_);
    for (int i = 100; i < 200; ++i) {
      EXPECT_TRUE(store->write(put(absl::StrCat("row", i), std::string(483, 'x'))).ok());
    }
  }

  void expect_refusal(const std::string& what) {
    const absl::Status status = open_status(dir_);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(dir_));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  TemporaryFolder folder_;
  const std::string dir_ = folder_.path();
};

// The log is the only copy of what was acknowledged last. Going on without its middle would give
// back a server that looks well and has forgotten things it promised.
TEST_F(DamagedStore, ADamagedByteInTheLogIsRefusedAndNothingIsAltered) {
  const std::filesystem::path log = files(dir_, ".log").back();
  const std::string good = read_file(log);
  ASSERT_GT(good.size(), 50'000u);
  for (const size_t at : {good.size() / 2, size_t{5}, good.size() - 3}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_file(log, bad);
    expect_refusal("had been acknowledged");
    EXPECT_EQ(read_file(log), bad) << "an operator may want to look at it";
  }
  write_file(log, good);
  EXPECT_EQ(rows(*must_open(dir_), "row", "s").size(), 100u);
}

TEST_F(DamagedStore, ALogThatLostItsEndIsRefused) {
  const std::filesystem::path log = files(dir_, ".log").back();
  for (const size_t left : {std::filesystem::file_size(log) - 1, size_t{1000}, size_t{0}}) {
    std::filesystem::resize_file(log, left);
    expect_refusal("change 101 had been acknowledged");
  }
  std::filesystem::remove(log);
  expect_refusal("change 101 had been acknowledged");
}

// RocksDB skips zeros to the end of a block, and goes on with the next one, without a word; the gap
// in the numbers tells.
TEST_F(DamagedStore, AHoleOfZerosInTheLogIsRefused) {
  const std::filesystem::path log = files(dir_, ".log").back();
  std::string bytes = read_file(log);
  ASSERT_EQ(bytes.size(), 100u * 512);
  std::fill(bytes.begin() + 8 * 512, bytes.begin() + 64 * 512, '\0');
  write_file(log, bytes);
  expect_refusal("can be read up to change 9 ");

  // Told that nothing behind the hole was promised, it still keeps a prefix and not the far side.
  std::filesystem::remove(dir_ + "/synced");
  const Rows left = rows(*must_open(dir_), "row", "s");
  ASSERT_EQ(left.size(), 8u);
  EXPECT_EQ(left.back().first, "row107");
}

TEST_F(DamagedStore, AnOperatorMayAcceptTheLoss) {
  const std::filesystem::path log = files(dir_, ".log").back();
  std::filesystem::resize_file(log, std::filesystem::file_size(log) / 2);
  expect_refusal("remove " + dir_ + "/synced");
  std::filesystem::remove(dir_ + "/synced");
  const size_t left = rows(*must_open(dir_), "row", "s").size();
  EXPECT_GT(left, 40u);
  EXPECT_LT(left, 60u);
}

TEST_F(DamagedStore, ADamagedTableIsReportedWithItsName) {
  must_open(dir_);  // moves the log into a table
  const std::filesystem::path table = files(dir_, ".sst").back();
  std::string bytes = read_file(table);
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  write_file(table, bytes);
  const auto store = must_open(dir_);
  const absl::Status status = store->get("row100").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr(table.filename().string()));
  EXPECT_EQ(store->scan("row", "s", [](auto, auto) { return true; }).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(DamagedStore, AMissingTableIsReportedWithItsName) {
  must_open(dir_);
  const std::filesystem::path table = files(dir_, ".sst").back();
  std::filesystem::remove(table);
  expect_refusal(table.stem().string());  // RocksDB names it by its old extension
}

TEST_F(DamagedStore, ADatabaseWithoutItsTableOfContentsIsNotANewOne) {
  std::filesystem::remove(dir_ + "/rocksdb/CURRENT");
  expect_refusal("CURRENT");
  std::filesystem::remove_all(dir_ + "/rocksdb");
  expect_refusal("is missing");
}

// ---- a disk that is full, or read-only -------------------------------------------------------

class SmallDisk {
 public:
  SmallDisk() {
    std::filesystem::create_directory(path());
    is_mounted_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return is_mounted_; }
  std::string path() const { return folder_.path("disk"); }
  bool remount(unsigned long flags, const char* options) const {
    return ::mount("tmpfs", path().c_str(), "tmpfs", MS_REMOUNT | flags, options) == 0;
  }

 private:
  TemporaryFolder folder_;
  bool is_mounted_ = false;
};

TEST(RocksDbStore, RefusesAReadOnlyDisk) {
  const SmallDisk disk;
  if (!disk.is_mounted()) GTEST_SKIP() << "may not mount a disk here";
  ASSERT_TRUE(disk.remount(MS_RDONLY, ""));
  const absl::Status status = open_status(disk.path() + "/store");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Read-only file system"));
}

TEST(RocksDbStore, AFullDiskEndsTheStoreAndLosesNothingAcknowledged) {
  const SmallDisk disk;
  if (!disk.is_mounted()) GTEST_SKIP() << "may not mount a disk here";
  const std::string dir = disk.path() + "/store";
  int acknowledged = 0;
  {
    const auto store = must_open(dir);
    absl::Status status;
    for (int i = 0; i < 1'000 && status.ok(); ++i) {
      status = store->write(put(absl::StrCat("row", 1000 + i), std::string(100'000, 'x')));
      if (status.ok()) status = store->sync();
      if (status.ok()) ++acknowledged;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr("no space left for the store in " + dir));
    EXPECT_THAT(std::string(status.message()), HasSubstr("nothing acknowledged was lost"));
    EXPECT_EQ(store->write(put("a", "b")), status);
    EXPECT_EQ(store->sync(), status);
    EXPECT_EQ(store->get("row1000").status(), status) << "it may show what was never durable";
  }
  EXPECT_GT(acknowledged, 10);
  ASSERT_TRUE(disk.remount(0, "size=64m"));
  const auto store = must_open(dir);
  EXPECT_GE(rows(*store, "row", "s").size(), static_cast<size_t>(acknowledged));
  ASSERT_OK(store->write(put("a", "b")));
  ASSERT_OK(store->sync());
}

}  // namespace
}  // namespace fairlead::store
