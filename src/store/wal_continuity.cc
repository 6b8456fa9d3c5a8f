#include "store/wal_continuity.h"

#include "rocksdb/write_batch.h"

namespace fairlead::store {
namespace {

// A batch's own representation begins with the number of its first change: 8 bytes, little-endian.
// RocksDB has no accessor for it.
uint64_t first_number(const rocksdb::WriteBatch& batch) {
  uint64_t number = 0;
  for (int i = 7; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(batch.Data()[i]);
  return number;
}

}  // namespace

WalContinuity::WalProcessingOption WalContinuity::LogRecordFound(unsigned long long log_number,
                                                                 const std::string& log_file,
                                                                 const rocksdb::WriteBatch& batch,
                                                                 rocksdb::WriteBatch* new_batch,
                                                                 bool* batch_changed) {
  file_ = log_file;
  // After a recovery that dropped a torn end, RocksDB starts the next log with an empty batch. Its
  // number is no change's number, and may be lower than the first that follows.
  if (batch.Count() > 0) {
    const uint64_t number = first_number(batch);
    if (expected_.has_value() && number > *expected_) return WalProcessingOption::kStopReplay;
    if (!first_.has_value()) first_ = number;
    expected_ = number + batch.Count();
  }
  return mode_ == Mode::kInspect ? WalProcessingOption::kIgnoreCurrentRecord
                                 : WalProcessingOption::kContinueProcessing;
}

}  // namespace fairlead::store
