#pragma once

#include "rocksdb/options.h"
#include "store/rocksdb_store.h"

namespace fairlead::store {

// How RocksDB is told to keep our rows: what is durable when, what is in memory, and the shape of
// its files.
rocksdb::Options make_options(const RocksDbOptions& wanted);

}  // namespace fairlead::store
