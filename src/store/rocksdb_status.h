#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "rocksdb/status.h"

namespace fairlead::store {

// What RocksDB said, in our words: `what` was being done to the store in the folder `dir`.
absl::Status from_rocksdb(const rocksdb::Status& status, std::string_view what,
                          std::string_view dir);

}  // namespace fairlead::store
