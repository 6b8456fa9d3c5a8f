#include "store/rocksdb_options.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_partitioner.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "store/keys.h"

namespace fairlead::store {
namespace {

// Filters know the runs that have rows in a file, so that a scan of one run's rows, of which there
// are often none, looks into no file in vain.
class RunPrefix final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "fairlead.run"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return keys::run_prefix_bytes(std::string_view(key.data(), key.size())) > 0;
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), keys::run_prefix_bytes(std::string_view(key.data(), key.size()))};
  }
};

// A row of a front goes where the last one went, or near it. A full memtable is searched from its
// top otherwise, which was a fifth of what a large backlog took.
//
// Before 8.12 RocksDB keeps these hints together with those of erased ranges, which are in another
// list, and takes the one for the other. So no range may begin with a key of this domain; the store
// asserts it.
class Front final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "fairlead.front"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return keys::front_bytes(std::string_view(key.data(), key.size())) > 0;
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), keys::front_bytes(std::string_view(key.data(), key.size()))};
  }
};

// Queues are taken from the front, which leaves long runs of tombstones where the next reader
// starts. A file with half of 4096 neighbours deleted is compacted at once. Not so what was just
// flushed: it would be merged alone with the whole level below, and its turn comes soon anyway.
class CompactOnDeletionBelowTop final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  const char* Name() const override { return "fairlead.deletions"; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override {
    if (context.level_at_creation == 0) return new Indifferent;
    return marking_->CreateTablePropertiesCollector(context);
  }

 private:
  class Indifferent final : public rocksdb::TablePropertiesCollector {
   public:
    const char* Name() const override { return "fairlead.indifferent"; }
    rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&, rocksdb::EntryType,
                               rocksdb::SequenceNumber, uint64_t) override {
      return rocksdb::Status::OK();
    }
    rocksdb::Status Finish(rocksdb::UserCollectedProperties*) override {
      return rocksdb::Status::OK();
    }
    rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
  };

  std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> marking_ =
      rocksdb::NewCompactOnDeletionCollectorFactory(4096, 2048);
};

void set_durability(const RocksDbOptions& wanted, rocksdb::Options* options) {
  options->paranoid_checks = true;
  // A write stays in the process until FlushWAL, which writes and syncs for a whole group.
  options->manual_wal_flush = true;
  // Which end of a log is a torn one, and which is damage?
  //
  //   kTolerateCorruptedTailRecords  refuses a bad checksum in the middle, but takes a log that was
  //                                  cut short for a torn one, and a power failure that saved the
  //                                  pages of an unsynced group out of order for damage.
  //   kAbsoluteConsistency           refuses to start after any crash.
  //   kPointInTimeRecovery           ends at the first bad record: always a prefix, but silent
  //                                  about what was behind it.
  //
  // None of them knows what has been acknowledged; we do. So the last one decides where the log
  // ends, and `inspect` compares that with the synced mark before anything is altered.
  // (track_and_verify_wals_in_manifest has a similar aim; beside SyncWAL it raises false alarms in
  // RocksDB before 7.10.)
  options->wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Replayed logs are done with: one life's logs never mix with the next one's, nor does a new
  // log's end run into the records of an old one.
  options->avoid_flush_during_recovery = false;
  options->recycle_log_file_num = 0;
  options->max_total_wal_size = wanted.wal_bytes_max;
  // A failure is final for us: nothing is to be repaired behind our back.
  options->max_bgerror_resume_count = 0;
}

void set_memory(const RocksDbOptions& wanted, rocksdb::Options* options) {
  options->write_buffer_size = wanted.memtable_bytes;
  options->max_write_buffer_number = 2;
  options->memtable_insert_with_hint_prefix_extractor = std::make_shared<Front>();
  options->max_open_files = 512;
  options->max_file_opening_threads = 2;  // 16 by default, at every start

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(wanted.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;  // so that the cache's size bounds them, too
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  // In pieces: a whole filter or index of a large file has hundreds of KiB, and where the cache
  // has no room for all of them each look at a row that was forgotten would read one again.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.block_size = size_t{8} << 10;
  table.format_version = 5;
  options->prefix_extractor = std::make_shared<RunPrefix>();
  options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

void set_background(rocksdb::Options* options) {
  options->max_background_jobs = 2;
  options->bytes_per_sync = size_t{1} << 20;  // writes of sorted files trickle instead of bursting
  options->avoid_unnecessary_blocking_io = true;
  const std::vector<rocksdb::CompressionType> known = rocksdb::GetSupportedCompressions();
  const bool has_lz4 = std::count(known.begin(), known.end(), rocksdb::kLZ4Compression) > 0;
  options->compression = has_lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

// What is written moves along fronts: new runs come at the end of their shard's part of a table,
// because ids made later sort later, and a backlog that is worked off touches its runs in the order
// in which they came. A level's files therefore never reach over the end of such a part: one that
// holds what is new overlaps nothing old below it and is moved, not merged. The first level is kept
// small, because what is flushed spans all tables and is merged with the whole of it.
void set_files(const RocksDbOptions& wanted, rocksdb::Options* options) {
  options->level_compaction_dynamic_level_bytes = true;
  options->max_bytes_for_level_base = wanted.memtable_bytes;
  options->target_file_size_base = size_t{16} << 20;
  options->sst_partitioner_factory =
      rocksdb::NewSstPartitionerFixedPrefixFactory(keys::kTableAndShardBytes);
  options->table_properties_collector_factories.push_back(
      std::make_shared<CompactOnDeletionBelowTop>());
}

}  // namespace

rocksdb::Options make_options(const RocksDbOptions& wanted) {
  rocksdb::Options options;
  set_durability(wanted, &options);
  set_memory(wanted, &options);
  set_background(&options);
  set_files(wanted, &options);
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.keep_log_file_num = 2;
  options.max_log_file_size = size_t{1} << 20;
  options.max_manifest_file_size = size_t{16} << 20;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

}  // namespace fairlead::store
