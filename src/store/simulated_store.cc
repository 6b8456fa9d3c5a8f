#include "store/simulated_store.h"

#include "absl/strings/str_cat.h"
#include "store/log_frame.h"

namespace fairlead::store {

absl::StatusOr<std::optional<std::string>> SimulatedStore::get(std::string_view key) const {
  if (!failure_.ok()) return failure_;
  return visible_.get(key);
}

absl::Status SimulatedStore::scan(std::string_view begin, std::string_view end,
                                  const Visit& visit) const {
  if (failure_.ok()) visible_.scan(begin, end, visit);
  return failure_;
}

absl::Status SimulatedStore::scan_reverse(std::string_view begin, std::string_view end,
                                          const Visit& visit) const {
  if (failure_.ok()) visible_.scan_reverse(begin, end, visit);
  return failure_;
}

absl::Status SimulatedStore::write(const WriteBatch& batch) {
  if (!failure_.ok()) return failure_;
  // The bytes may have reached the disk although the write reports a failure: append them first.
  append_frame(batch, &log_);
  ++unsynced_batches_;
  if (writes_until_failure_.has_value() && (*writes_until_failure_)-- == 0) return fail("write");
  visible_.apply(batch);
  return absl::OkStatus();
}

absl::Status SimulatedStore::sync() {
  if (!failure_.ok()) return failure_;
  if (fail_next_sync_) return fail("sync");
  replay_log(&durable_);
  log_.clear();
  unsynced_batches_ = 0;
  return absl::OkStatus();
}

uint64_t SimulatedStore::crash(Random& random) {
  damage_log(random);
  const uint64_t lost = unsynced_batches_ - replay_log(&durable_);
  visible_ = durable_;
  log_.clear();
  unsynced_batches_ = 0;
  fail_next_sync_ = false;
  writes_until_failure_.reset();
  failure_ = absl::OkStatus();
  return lost;
}

// The extremes get a share of their own: all of it arrived, and none of it. Otherwise the file ends
// at some byte; or its length was saved and some of its data was not, and a stretch reads as zeros
// or as whatever the disk held before, with good frames behind it.
void SimulatedStore::damage_log(Random& random) {
  const uint64_t fate = random.below(8);
  if (fate == 0) return;
  const size_t from = fate == 1 ? 0 : random.below(log_.size() + 1);
  if (fate < 5) {
    log_.resize(from);
    return;
  }
  const size_t bytes = random.below(log_.size() - from + 1);
  const bool is_noise = random.chance(0.5);
  for (size_t i = from; i < from + bytes; ++i) {
    log_[i] = is_noise ? static_cast<char>(random.next()) : '\0';
  }
}

uint64_t SimulatedStore::replay_log(Image* image) const {
  std::string_view rest = log_;
  uint64_t batches = 0;
  while (const std::optional<WriteBatch> batch = take_frame(&rest)) {
    image->apply(*batch);
    ++batches;
  }
  return batches;
}

absl::Status SimulatedStore::fail(std::string_view what) {
  const std::string message = absl::StrCat(
      "the simulated disk failed a ", std::string(what),
      "; nothing acknowledged was lost, and the store refuses everything until it is reopened");
  failure_ = absl::UnavailableError(message);
  return failure_;
}

}  // namespace fairlead::store
