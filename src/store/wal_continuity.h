#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rocksdb/wal_filter.h"

namespace fairlead::store {

// Watches RocksDB replay its write-ahead logs, and makes sure that they are replayed without a gap.
//
// RocksDB stops at a record whose checksum is wrong, but does not ask whether records are missing
// between two good ones: a stretch of zeros is skipped silently, and so is the lost end of a log
// with another log after it. Both can follow a power failure. Changes are numbered without gaps, so
// a number that is too high gives them away; replay then ends there, at a prefix.
class WalContinuity final : public rocksdb::WalFilter {
 public:
  enum class Mode : uint8_t {
    kInspect,  // look at every record and replay none of them
    kReplay,
  };

  // `first_max` is the highest number that the first record may have, where known.
  WalContinuity(Mode mode, std::optional<uint64_t> first_max) : mode_(mode), expected_(first_max) {}

  WalProcessingOption LogRecordFound(unsigned long long log_number, const std::string& log_file,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* new_batch, bool* batch_changed) override;
  const char* Name() const override { return "fairlead.WalContinuity"; }

  // The number of the first change; nothing when there was none.
  std::optional<uint64_t> first() const { return first_; }
  // The number of the last change that follows on all before it. Only after `first`.
  uint64_t last() const { return *expected_ - 1; }
  // The log file that was read last, for messages.
  const std::string& file() const { return file_; }

 private:
  const Mode mode_;
  std::optional<uint64_t> expected_;
  std::optional<uint64_t> first_;
  std::string file_;
};

}  // namespace fairlead::store
