// The promise of store.h, kept by a process that is killed: a prefix survives, and everything that
// was acknowledged is in it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "store/rocksdb_store.h"
#include "store/store_testing.h"

namespace fairlead::store {
namespace {

constexpr char kChildFolder[] = "FAIRLEAD_CRASH_FOLDER";
constexpr char kChildSeed[] = "FAIRLEAD_CRASH_SEED";
constexpr int kChildPipe = 3;
// Small, so that a child's short life sees tables being written and logs being replaced.
constexpr RocksDbOptions kOptions{.memtable_bytes = size_t{1} << 20,
                                  .wal_bytes_max = size_t{4} << 20};

std::string row_key(uint64_t number) {
  return absl::StrCat("row ", absl::Dec(number, absl::kZeroPad10));
}
size_t row_bytes(uint64_t number) {
  // Every tenth is larger than one of the log's blocks: a kill may tear it.
  return number % 10 == 0 ? 100'000 : number % 997;
}

// Batch n adds row n, and removes every row below n - 500 now and then.
WriteBatch numbered(uint64_t number) {
  WriteBatch batch;
  batch.put(row_key(number), std::string(row_bytes(number), static_cast<char>('a' + number % 26)));
  batch.put("last", absl::StrCat(number));
  if (number % 100 == 0 && number > 500) {
    batch.erase_range(row_key(0), row_key(number - 500));
    batch.put("first", absl::StrCat(number - 500));
  }
  return batch;
}

uint64_t number_at(const Store& store, std::string_view key) {
  const auto value = store.get(key);
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  return value.ok() && value->has_value() ? std::stoull(**value) : 0;
}

// How many batches the store holds; every trace of each of them has to be there.
uint64_t check_prefix(const Store& store) {
  const uint64_t last = number_at(store, "last");
  uint64_t next = std::max<uint64_t>(1, number_at(store, "first"));
  for (const auto& [key, value] : rows(store, "row ", "row~")) {
    EXPECT_EQ(key, row_key(next));
    EXPECT_EQ(value, std::string(row_bytes(next), static_cast<char>('a' + next % 26)));
    ++next;
  }
  EXPECT_EQ(next, last + 1);
  return last;
}

// Not a test: the child's life, which only ends by being killed.
TEST(CrashChild, DISABLED_WritesUntilItIsKilled) {
  const char* folder = std::getenv(kChildFolder);
  if (folder == nullptr) GTEST_SKIP() << "only as a child of the test below";
  Random random(std::strtoull(std::getenv(kChildSeed), nullptr, 10));
  const auto store = open_rocksdb(folder, kOptions);
  ASSERT_OK(store.status());
  for (uint64_t number = number_at(**store, "last") + 1;; ++number) {
    ASSERT_OK((*store)->write(numbered(number)));
    if (!random.chance(0.1)) continue;
    ASSERT_OK((*store)->sync());
    ASSERT_EQ(::write(kChildPipe, &number, sizeof(number)), ssize_t{sizeof(number)});
  }
}

struct Child {
  pid_t pid = 0;
  int acknowledgements = -1;
};

// A new program and not just a fork: RocksDB's threads do not survive one.
Child start_child(const std::string& folder, uint64_t seed) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A file duplicated onto itself would stay close-on-exec, so the pipe takes a detour.
  const int detour = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 100);
  posix_spawn_file_actions_adddup2(&actions, detour, kChildPipe);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

  std::vector<std::string> environment = {absl::StrCat(kChildFolder, "=", folder),
                                          absl::StrCat(kChildSeed, "=", seed)};
  std::vector<std::string> arguments = {"store_test", "--gtest_also_run_disabled_tests",
                                        "--gtest_filter=CrashChild.*"};
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  Child child;
  EXPECT_EQ(::posix_spawn(&child.pid, "/proc/self/exe", &actions, nullptr,
                          pointers(arguments).data(), pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(detour);
  ::close(ends[1]);
  child.acknowledgements = ends[0];
  return child;
}

// Kills the child after it has acknowledged a few groups, wherever it is then. Returns the last
// number that it acknowledged.
uint64_t kill_after(const Child& child, uint64_t groups) {
  uint64_t acknowledged = 0;
  const auto next = [&] {
    return ::read(child.acknowledgements, &acknowledged, sizeof(acknowledged)) ==
           ssize_t{sizeof(acknowledged)};
  };
  while (groups > 0 && next()) --groups;
  EXPECT_EQ(groups, 0u) << "the child ended by itself";
  ::kill(child.pid, SIGKILL);
  while (next()) {
  }
  ::close(child.acknowledgements);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  return acknowledged;
}

TEST(Crash, AKilledProcessLeavesAPrefixThatHoldsEverythingAcknowledged) {
  TemporaryFolder folder;
  Random random(7);
  for (int life = 0; life < 20; ++life) {
    const Child child = start_child(folder.path(), random.next());
    const uint64_t acknowledged = kill_after(child, 1 + random.below(40));
    const auto store = open_rocksdb(folder.path(), kOptions);
    ASSERT_OK(store.status());
    EXPECT_GE(check_prefix(**store), acknowledged) << "life " << life;
  }
}

// The log's unsynced end may be on the disk in part, or in the wrong order. None of it was promised
// to anyone, so the store opens without it.
TEST(Crash, ADamagedEndThatWasNeverSyncedIsDropped) {
  Random random(8);
  for (int life = 0; life < 10; ++life) {
    TemporaryFolder folder;
    const Child child = start_child(folder.path(), random.next());
    const uint64_t acknowledged = kill_after(child, 3 + random.below(10));
    std::filesystem::path log;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/rocksdb")) {
      if (entry.path().extension() == ".log" && entry.path() > log) log = entry.path();
    }
    std::string bytes = read_file(log);
    for (int i = 0; i < 100; ++i) bytes.push_back(static_cast<char>(random.next()));
    bytes.append(random.below(40'000), '\0');
    bytes.append("more noise");
    write_file(log, bytes);

    const auto store = open_rocksdb(folder.path(), kOptions);
    ASSERT_OK(store.status());
    EXPECT_GE(check_prefix(**store), acknowledged);
    ASSERT_OK((*store)->write(numbered(check_prefix(**store) + 1)));
    ASSERT_OK((*store)->sync());
  }
}

}  // namespace
}  // namespace fairlead::store
