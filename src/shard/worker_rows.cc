#include "shard/worker_rows.h"

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// DO NOT CHANGE: rows are found by it. The second one ends the range of the first.
constexpr char kPrefix[] = "durable_worker/";
constexpr char kAfter[] = "durable_worker0";

std::string key_of(const std::string& name) {
  return store::keys::meta(absl::StrCat(kPrefix, name));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> WorkerRows::load() const {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto begin = store::keys::meta(kPrefix);
  const auto status = store_.scan(begin, store::keys::meta(kAfter),
                                  [&](std::string_view key, std::string_view value) {
                                    rows.emplace_back(key.substr(begin.size()), value);
                                    return true;
                                  });
  FL_ASSERT(status.ok(), "the store can be read");
  return rows;
}

void WorkerRows::put(const std::string& name, const std::string& row, Job done) {
  store::WriteBatch batch;
  batch.put(key_of(name), row);
  commits_.write(batch);
  commits_.after_durable(std::move(done));
}

void WorkerRows::erase(const std::string& name) {
  store::WriteBatch batch;
  batch.erase(key_of(name));
  commits_.write(batch);
}

}  // namespace fairlead::shard
