#include "shard/worker_rows.h"

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// DO NOT CHANGE: rows are found by it.
std::string prefix_of(WorkerRow kind) {
  return kind == WorkerRow::kWorker ? "durable_worker/" : "durable_build/";
}

// The first key behind those of a prefix, whose last sign is a slash.
std::string after(std::string prefix) {
  prefix.back() = '/' + 1;
  return prefix;
}

std::string key_of(WorkerRow kind, const std::string& name) {
  return store::keys::meta(absl::StrCat(prefix_of(kind), name));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> WorkerRows::load(WorkerRow kind) const {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto begin = store::keys::meta(prefix_of(kind));
  const auto status = store_.scan(begin, store::keys::meta(after(prefix_of(kind))),
                                  [&](std::string_view key, std::string_view value) {
                                    rows.emplace_back(key.substr(begin.size()), value);
                                    return true;
                                  });
  FL_ASSERT(status.ok(), "the store can be read");
  return rows;
}

void WorkerRows::put(WorkerRow kind, const std::string& name, const std::string& row, Job done) {
  store::WriteBatch batch;
  batch.put(key_of(kind, name), row);
  commits_.write(batch);
  commits_.after_durable(std::move(done));
}

void WorkerRows::erase(WorkerRow kind, const std::string& name, Job done) {
  store::WriteBatch batch;
  batch.erase(key_of(kind, name));
  commits_.write(batch);
  commits_.after_durable(std::move(done));
}

}  // namespace fairlead::shard
