#include "shard/runs_ahead.h"

#include <utility>

#include "base/assert.h"
#include "shard/stored_events.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

constexpr size_t kRunsMax = 32;
constexpr size_t kEventRowsMax = 4 * kRunsMax;
constexpr size_t kBytesMax = size_t{128} << 10;
constexpr uint64_t kRightAfterMs = 1000;
constexpr int kPatience = 256;

// A run's id begins with the time of its making.
uint64_t made_ms(const std::string& run) {
  uint64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | static_cast<uint8_t>(run[i]);
  return ms;
}

}  // namespace

std::optional<RunsAhead::Rows> RunsAhead::take(
    const std::string& run, absl::FunctionRef<bool(const std::string&)> is_in_memory) {
  for (Page* page : {&page_, &page_before_}) {
    if (auto found = page->extract(run)) return std::move(found.mapped());
  }
  // One that the page begins behind is a straggler and says nothing about what comes next.
  if ((!page_.empty() && run < begin_) || !follows(run)) return read_one(run);
  // Most of what was read is still here: nobody wanted it.
  if (page_before_.size() > kRunsMax / 2) wrong_ = kPatience;
  page_before_ = std::exchange(page_, {});
  read_on(run, is_in_memory);
  auto found = page_.extract(run);
  return found ? std::optional(std::move(found.mapped())) : std::nullopt;
}

bool RunsAhead::follows(const std::string& run) {
  const uint64_t before = std::exchange(last_missing_ms_, made_ms(run));
  if (wrong_ > 0) {
    --wrong_;
    return false;
  }
  return last_missing_ms_ >= before && last_missing_ms_ - before <= kRightAfterMs;
}

std::optional<RunsAhead::Rows> RunsAhead::read_one(const std::string& run) const {
  auto row = store_->get(store::keys::run(shard_, run));
  FL_ASSERT(row.ok(), "the store can be read");
  if (!row->has_value()) return std::nullopt;
  return Rows{std::move(**row), ""};
}

void RunsAhead::read_on(const std::string& run,
                        absl::FunctionRef<bool(const std::string&)> is_in_memory) {
  size_t bytes = 0;
  std::string last = run;
  begin_ = run;
  auto status = store_->scan(store::keys::run(shard_, run), store::keys::runs(shard_).end,
                             [&](std::string_view key, std::string_view value) {
                               std::string found(key.substr(key.size() - run.size()));
                               if (page_.empty() && found != run)
                                 return false;  // there is no such run
                               last = found;
                               if (!is_in_memory(found) && !page_before_.contains(found)) {
                                 page_.emplace(std::move(found), Rows{std::string(value), ""});
                               }
                               bytes += value.size();
                               return page_.size() < kRunsMax && bytes < kBytesMax;
                             });
  FL_ASSERT(status.ok(), "the store can be read");
  if (page_.empty()) return;
  size_t visited = 0;
  status = store_->scan(
      store::keys::events(shard_, run).begin, store::keys::events(shard_, last).end,
      [&](std::string_view key, std::string_view value) {
        bytes += value.size();
        if (first_event_of(key) == 1) {
          const auto of = key.substr(key.size() - run.size() - sizeof(int64_t), run.size());
          const auto found = page_.find(std::string(of));
          if (found != page_.end()) found->second.first_events = std::string(value);
        }
        return ++visited < kEventRowsMax && bytes < 2 * kBytesMax;
      });
  FL_ASSERT(status.ok(), "the store can be read");
}

}  // namespace fairlead::shard
