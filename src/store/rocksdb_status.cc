#include "store/rocksdb_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace fairlead::store {

absl::Status from_rocksdb(const rocksdb::Status& status, std::string_view what,
                          std::string_view dir) {
  if (status.ok()) return absl::OkStatus();
  const std::string folder(dir);
  const std::string message =
      absl::StrCat("cannot ", std::string(what), " the store in ", folder, ": ", status.ToString());
  switch (status.code()) {
    case rocksdb::Status::kCorruption:
      return absl::DataLossError(absl::StrCat(message, "; restore the folder from a backup"));
    case rocksdb::Status::kIOError:
      if (status.IsNoSpace()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("no space left for the store in ", folder,
                         "; nothing acknowledged was lost. Make room and start again (",
                         status.ToString(), ")"));
      }
      // A file that the database itself refers to has gone.
      if (status.IsPathNotFound()) return absl::DataLossError(message);
      return absl::UnavailableError(message);
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTimedOut:
    case rocksdb::Status::kTryAgain:
    case rocksdb::Status::kAborted:
    case rocksdb::Status::kShutdownInProgress:
      return absl::UnavailableError(message);
    case rocksdb::Status::kNotSupported:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; was it written by a newer version?"));
    default:
      return absl::InternalError(message);
  }
}

}  // namespace fairlead::store
