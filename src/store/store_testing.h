#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

// What the tests of this room share.
namespace fairlead::store {

using Rows = std::vector<std::pair<std::string, std::string>>;

inline Rows rows(const Store& store, std::string_view begin = "", std::string_view end = "\xff") {
  Rows rows;
  const absl::Status status = store.scan(begin, end, [&](std::string_view k, std::string_view v) {
    rows.emplace_back(k, v);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return rows;
}

inline WriteBatch put(std::string key, std::string value) {
  WriteBatch batch;
  batch.put(std::move(key), std::move(value));
  return batch;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fairlead_store_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(std::string_view name = "store") const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

#define ASSERT_OK(expression)                        \
  do {                                               \
    const absl::Status status_ = (expression);       \
    ASSERT_TRUE(status_.ok()) << status_.ToString(); \
  } while (false)

}  // namespace fairlead::store
