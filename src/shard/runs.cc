#include "shard/runs.h"

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// A protobuf object takes about three times its encoded size; the rest is maps and the entry
// itself.
constexpr size_t kEntryBytes = 1024;
constexpr size_t kActivityBytes = 1024;
constexpr size_t kTimerBytes = 200;
constexpr size_t kRecentBytesMax = 32 << 10;

template <typename Row>
Row parse_row(std::string_view value) {
  Row row;
  FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
            "a row holds what its key says");
  return row;
}

}  // namespace

void RunEntry::remember_recent(int64_t first_id, const std::string& events) {
  recent.emplace_back(first_id, events);
  recent_bytes += events.size();
  while (recent_bytes > kRecentBytesMax && recent.size() > 1) {
    recent_bytes -= recent.front().second.size();
    recent.pop_front();
  }
}

void RunEntry::recall_updates() {
  absl::btree_map<int64_t, const model::UpdateState*> admitted;
  for (const auto& [id, update] : run.updates) {
    if (update.accepted_id() == 0) admitted[update.admitted_id()] = &update;
  }
  for (const auto& [at, update] : admitted) {
    updates.push_back({update->update_id(), update->request(), false, true});
  }
}

RunEntry* RunCache::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    auto* entry = found->second.get();
    lru_.splice(lru_.begin(), lru_, entry->lru);
    return entry;
  }
  const auto rows =
      ahead_.take(key, [this](const std::string& run) { return entries_.contains(run); });
  if (!rows.has_value()) return nullptr;
  auto entry = std::make_unique<RunEntry>();
  entry->key = key;
  FL_ASSERT(entry->run.state.ParseFromString(rows->state), "a run's row is a run's state");
  if (entry->run.state.batches() == 1 && !rows->first_events.empty()) {
    entry->remember_recent(1, rows->first_events);
  }
  if (!entry->run.state.has_no_pending()) load_pending(*entry);
  entry->recall_updates();
  return insert(std::move(entry));
}

void RunCache::load_pending(RunEntry& entry) const {
  const auto range = store::keys::pending(shard_, entry.key);
  const size_t kind_at = range.begin.size();
  const auto status =
      store_->scan(range.begin, range.end, [&](std::string_view row_key, std::string_view value) {
        switch (row_key[kind_at]) {
          case 'a':
            entry.run.add_loaded(parse_row<model::ActivityState>(value));
            break;
          case 't':
            entry.run.add_loaded(parse_row<model::TimerState>(value));
            break;
          case 'u':
            entry.run.add_loaded(parse_row<model::UpdateState>(value));
            break;
          case 'c':
            entry.run.add_loaded(parse_row<model::ChildState>(value));
            break;
          case 'b':
            entry.run.add_loaded(parse_row<model::CallbackState>(value));
            break;
          case 'r':
            entry.run.add_loaded(parse_row<model::AttachedRequest>(value));
            break;
          case 'z':
            break;  // read by who describes the run
          default:
            entry.run.add_loaded(parse_row<model::ExternalState>(value));
        }
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
}

RunEntry* RunCache::create(const std::string& key) {
  auto entry = std::make_unique<RunEntry>();
  entry->key = key;
  entry->is_new = true;
  return insert(std::move(entry));
}

RunEntry* RunCache::insert(std::unique_ptr<RunEntry> entry) {
  auto* inserted = entry.get();
  lru_.push_front(inserted);
  inserted->lru = lru_.begin();
  entries_.emplace(inserted->key, std::move(entry));
  resize(inserted);
  return inserted;
}

void RunCache::erase(RunEntry* entry) {
  bytes_ -= entry->bytes;
  lru_.erase(entry->lru);
  const std::string key = entry->key;
  entries_.erase(key);
}

void RunCache::resize(RunEntry* entry) {
  bytes_ -= entry->bytes;
  entry->bytes = kEntryBytes + entry->recent_bytes + 3 * entry->run.state.ByteSizeLong() +
                 entry->run.activities.size() * kActivityBytes +
                 (entry->run.timers.size() + entry->run.externals.size()) * kTimerBytes +
                 (entry->run.updates.size() + entry->run.requests.size()) * kTimerBytes +
                 entry->run.callbacks.size() * kActivityBytes +
                 entry->run.children.size() * kActivityBytes;
  bytes_ += entry->bytes;
  // Hardly anybody asks for a closed run again, and what has just been used is quick to clear away.
  if (!entry->run.is_open()) lru_.splice(lru_.end(), lru_, entry->lru);
  if (bytes_ > bytes_max_) evict(entry);
}

void RunCache::evict(const RunEntry* except) {
  auto at = lru_.end();
  while (bytes_ > bytes_max_ && at != lru_.begin()) {
    auto* entry = *--at;
    if (entry == except || entry->is_pinned()) continue;
    ++at;
    erase(entry);
  }
}

}  // namespace fairlead::shard
