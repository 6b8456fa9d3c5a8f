#include "store/rocksdb_store.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "store/keys.h"
#include "store/rocksdb_options.h"
#include "store/rocksdb_status.h"
#include "store/store_folder.h"
#include "store/wal_continuity.h"

namespace fairlead::store {
namespace {

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

// ---- the rows of a run ----------------------------------------------------------------------

// Whether the range has rows of one run and one table only.
bool is_within_run(std::string_view begin, std::string_view end) {
  const size_t bytes = keys::run_prefix_bytes(begin);
  if (bytes == 0) return false;
  const std::string_view prefix = begin.substr(0, bytes);
  if (end.starts_with(prefix)) return true;
  // The first key behind all that begin like this.
  std::string next(prefix);
  while (!next.empty() && next.back() == '\xff') next.pop_back();
  if (next.empty()) return false;
  ++next.back();
  return end == next;
}

// ---- the format row -------------------------------------------------------------------------

// DO NOT CHANGE: on disk. version:4 shard_count:2, big-endian. Later versions may append to it, and
// must keep the first four bytes: they are how this version recognises that it is too old.
struct Format {
  uint32_t version = 0;
  uint16_t shard_count = 0;
};
constexpr size_t kFormatBytes = 6;

std::string format_key() { return keys::meta("format"); }

std::string encode_format(const Format& format) {
  std::string value;
  for (int shift = 24; shift >= 0; shift -= 8) {
    value.push_back(static_cast<char>(format.version >> shift));
  }
  value.push_back(static_cast<char>(format.shard_count >> 8));
  value.push_back(static_cast<char>(format.shard_count));
  return value;
}

absl::StatusOr<Format> decode_format(std::string_view value, const std::string& dir) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(value[i]); };
  Format format;
  if (value.size() >= sizeof(uint32_t)) {
    format.version = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
  }
  if (format.version > kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store in ", dir, " has format version ", format.version,
                     ", and this server knows versions up to ", kFormatVersion,
                     "; start the newer server that wrote it. Nothing has been altered"));
  }
  if (format.version != 0 && format.version < kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store in ", dir, " has format version ", format.version,
                     ", which this server can no longer read (it writes version ", kFormatVersion,
                     "); start with an empty folder or the server that wrote it. Nothing has been "
                     "altered"));
  }
  if (format.version == 0 || value.size() != kFormatBytes) {
    return absl::DataLossError(absl::StrCat("the format row of the store in ", dir,
                                            " is malformed; restore the folder from a backup"));
  }
  format.shard_count = static_cast<uint16_t>(byte(4) << 8 | byte(5));
  return format;
}

// ---- opening --------------------------------------------------------------------------------

// Makes the database beside its final place, so that a crash on the way leaves no half-made store.
absl::Status initialise(StoreFolder& folder, const RocksDbOptions& wanted) {
  if (folder.read_synced().value_or(0) > 0) {
    return absl::DataLossError(
        absl::StrCat(folder.synced_mark(), " says that a store was here, but ", folder.database(),
                     " is missing; restore the folder from a backup, or empty it to start anew"));
  }
  if (absl::Status cleared = folder.clear_new_database(); !cleared.ok()) return cleared;

  rocksdb::Options options = make_options(wanted);
  options.create_if_missing = true;
  options.error_if_exists = true;
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, folder.new_database(), &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  const std::string format = encode_format({kFormatVersion, wanted.shard_count});
  if (status.ok()) status = db->Put(rocksdb::WriteOptions(), slice(format_key()), slice(format));
  // Out of the log and into a table: `inspect` does not replay logs.
  if (status.ok()) status = db->Flush(rocksdb::FlushOptions());
  if (status.ok()) status = db->Close();
  if (!status.ok()) return from_rocksdb(status, "create", folder.path());
  return folder.adopt_new_database();
}

class NoLog final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

struct Inspection {
  Format format;
  // The number of the last change that the sorted files may hold.
  uint64_t manifest_last = 0;
};

// The changes up to which the log can be read. Where it holds none, everything is in sorted files.
uint64_t readable_last(const WalContinuity& wal, uint64_t manifest_last) {
  if (!wal.first().has_value() || *wal.first() > manifest_last + 1) return manifest_last;
  return wal.last();
}

// Looks at the store without altering it: is its format ours, and is every acknowledged change
// there?
//
// One hole is left. The manifest's last number may run ahead of the sorted files by what was
// written while the newest of them was being made. If the log of just that stretch is damaged at
// its very first record, and nothing was synced since, the loss is not noticed.
absl::StatusOr<Inspection> inspect(const StoreFolder& folder, const RocksDbOptions& wanted) {
  WalContinuity wal(WalContinuity::Mode::kInspect, std::nullopt);
  rocksdb::Options options = make_options(wanted);
  options.info_log = std::make_shared<NoLog>();
  options.wal_filter = &wal;

  rocksdb::DB* opened = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::Status status = rocksdb::DB::OpenForReadOnly(
      options, folder.database(), {{rocksdb::kDefaultColumnFamilyName, options}}, &handles,
      &opened);
  if (!status.ok()) return from_rocksdb(status, "open", folder.path());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);

  std::string value;
  status = db->Get(rocksdb::ReadOptions(), slice(format_key()), &value);
  if (!status.ok() && !status.IsNotFound()) return from_rocksdb(status, "read", folder.path());
  absl::StatusOr<Format> format = decode_format(value, folder.path());
  if (!format.ok()) return format.status();

  const uint64_t manifest_last = db->GetLatestSequenceNumber();
  const uint64_t readable = readable_last(wal, manifest_last);
  const uint64_t synced = folder.read_synced().value_or(0);
  if (readable < synced) {
    return absl::DataLossError(absl::StrCat(
        "the store in ", folder.path(), " is damaged: its log can be read up to change ", readable,
        wal.file().empty() ? "" : absl::StrCat(" (", wal.file(), ")"), ", but change ", synced,
        " had been acknowledged. Nothing has been altered. Restore the folder from a backup; to go "
        "on with what is readable and lose the rest, remove ",
        folder.synced_mark()));
  }
  return Inspection{*format, manifest_last};
}

// ---- the store ------------------------------------------------------------------------------

class RocksDbStoreImpl final : public RocksDbStore {
 public:
  RocksDbStoreImpl(std::unique_ptr<StoreFolder> folder, std::unique_ptr<WalContinuity> wal,
                   std::unique_ptr<rocksdb::DB> db, uint16_t shard_count)
      : folder_(std::move(folder)),
        wal_(std::move(wal)),
        db_(std::move(db)),
        shard_count_(shard_count) {}

  ~RocksDbStoreImpl() override {
    sync().IgnoreError();  // nobody was promised these changes
    db_->Close().PermitUncheckedError();
  }

  uint16_t shard_count() const override { return shard_count_; }

  absl::StatusOr<std::optional<std::string>> get(std::string_view key) const override {
    if (has_failed()) return failure();
    std::string value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), slice(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    if (!status.ok()) return from_rocksdb(status, "read", folder_->path());
    return value;
  }

  absl::Status scan(std::string_view begin, std::string_view end,
                    const Visit& visit) const override {
    if (has_failed()) return failure();
    if (begin >= end) return absl::OkStatus();
    const rocksdb::Slice upper = slice(end);
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &upper;
    options.prefix_same_as_start = is_within_run(begin, end);
    options.total_order_seek = !options.prefix_same_as_start;
    const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options));
    for (row->Seek(slice(begin)); row->Valid(); row->Next()) {
      if (!visit(view(row->key()), view(row->value()))) return absl::OkStatus();
    }
    return from_rocksdb(row->status(), "read", folder_->path());
  }

  absl::Status scan_reverse(std::string_view begin, std::string_view end,
                            const Visit& visit) const override {
    if (has_failed()) return failure();
    if (begin >= end) return absl::OkStatus();
    const rocksdb::Slice lower = slice(begin);
    const rocksdb::Slice upper = slice(end);
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &lower;
    options.iterate_upper_bound = &upper;
    options.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options));
    for (row->SeekToLast(); row->Valid(); row->Prev()) {
      if (!visit(view(row->key()), view(row->value()))) return absl::OkStatus();
    }
    return from_rocksdb(row->status(), "read", folder_->path());
  }

  absl::Status write(const WriteBatch& batch) override {
    if (has_failed()) return failure();
    if (batch.empty()) return absl::OkStatus();
    rocksdb::WriteBatch native(encoded_bytes(batch));
    if (absl::Status made = translate(batch, &native); !made.ok()) return fail(std::move(made));
    const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &native);
    if (!status.ok()) return fail(from_rocksdb(status, "write to", folder_->path()));
    return absl::OkStatus();
  }

  absl::Status sync() override {
    if (has_failed()) return failure();
    // Everything up to here is in the log's buffer already; what comes meanwhile may be synced too.
    const uint64_t last = db_->GetLatestSequenceNumber();
    const rocksdb::Status status = db_->FlushWAL(/*sync=*/true);
    if (!status.ok()) return fail(from_rocksdb(status, "sync", folder_->path()));
    if (absl::Status marked = folder_->write_synced(last); !marked.ok()) {
      return fail(std::move(marked));
    }
    return absl::OkStatus();
  }

 private:
  // Room for the whole batch, so that it is built without growing.
  static size_t encoded_bytes(const WriteBatch& batch) {
    size_t bytes = 12;
    for (const WriteBatch::Op& op : batch.ops()) bytes += op.key.size() + op.value.size() + 12;
    return bytes;
  }

  absl::Status translate(const WriteBatch& batch, rocksdb::WriteBatch* native) const {
    rocksdb::Status status;
    for (const WriteBatch::Op& op : batch.ops()) {
      switch (op.kind) {
        case WriteBatch::Kind::kPut:
          status = native->Put(slice(op.key), slice(op.value));
          break;
        case WriteBatch::Kind::kErase:
          status = native->Delete(slice(op.key));
          break;
        case WriteBatch::Kind::kEraseRange:
          FL_ASSERT(keys::front_bytes(op.key) == 0, "ranges begin before the rows of a front");
          // RocksDB refuses a range that ends before it begins; for us it is just empty.
          if (op.key < op.value) status = native->DeleteRange(slice(op.key), slice(op.value));
          break;
      }
      if (!status.ok()) return from_rocksdb(status, "write to", folder_->path());
    }
    return absl::OkStatus();
  }

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  absl::Status failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
  }

  // Remembers the first failure and answers with it from now on.
  absl::Status fail(absl::Status status) {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.ok()) {
      failure_ = absl::Status(
          status.code(),
          absl::StrCat(status.message(), "; the store refuses everything until it is reopened"));
      has_failed_.store(true, std::memory_order_release);
    }
    return failure_;
  }

  const std::unique_ptr<StoreFolder> folder_;  // outlives the database: it holds the lock
  const std::unique_ptr<WalContinuity> wal_;   // the database keeps a pointer to it
  const std::unique_ptr<rocksdb::DB> db_;
  const uint16_t shard_count_;

  std::atomic<bool> has_failed_ = false;
  mutable std::mutex failure_mutex_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbStore>> open_rocksdb(std::string dir,
                                                           RocksDbOptions options) {
  if (options.shard_count == 0) return absl::InvalidArgumentError("a store has at least 1 shard");
  absl::StatusOr<std::unique_ptr<StoreFolder>> folder = StoreFolder::open(std::move(dir));
  if (!folder.ok()) return folder.status();

  const absl::StatusOr<bool> exists = (*folder)->has_database();
  if (!exists.ok()) return exists.status();
  if (!*exists) {
    if (absl::Status made = initialise(**folder, options); !made.ok()) return made;
  }
  const absl::StatusOr<Inspection> found = inspect(**folder, options);
  if (!found.ok()) return found.status();

  rocksdb::Options native = make_options(options);
  auto wal =
      std::make_unique<WalContinuity>(WalContinuity::Mode::kReplay, found->manifest_last + 1);
  native.wal_filter = wal.get();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(native, (*folder)->database(), &opened);
  if (!status.ok()) return from_rocksdb(status, "open", (*folder)->path());
  std::unique_ptr<rocksdb::DB> db(opened);
  return std::make_unique<RocksDbStoreImpl>(*std::move(folder), std::move(wal), std::move(db),
                                            found->format.shard_count);
}

}  // namespace fairlead::store
