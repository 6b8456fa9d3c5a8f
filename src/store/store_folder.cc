#include "store/store_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace fairlead::store {
namespace {

absl::Status folder_error(int error, std::string_view what, const std::string& path) {
  const std::string message =
      absl::StrCat("cannot ", std::string(what), " ", path, ": ", std::strerror(error));
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(message, "; the server's user must own the folder"));
    case EROFS:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; the store needs a folder that it can write to"));
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; make room on the disk and try again"));
    case ENOTDIR:
    case EEXIST:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; name a folder, or one that does not exist yet"));
    default:
      return absl::UnavailableError(message);
  }
}

absl::Status make_folder(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return absl::OkStatus();
    return folder_error(ENOTDIR, "use", path);
  }
  if (errno != ENOENT) return folder_error(errno, "look at", path);
  // The parents get the usual mode; what lies in the folder itself is for its owner's eyes only.
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return folder_error(error.value(), "create", parent.string());
  if (::mkdir(path.c_str(), 0700) != 0) return folder_error(errno, "create", path);
  return absl::OkStatus();
}

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

std::string read_owner(int lock_fd) {
  char pid[24];
  const ssize_t size = ::pread(lock_fd, pid, sizeof(pid), 0);
  std::string owner(pid, size > 0 ? static_cast<size_t>(size) : 0);
  while (!owner.empty() && owner.back() == '\n') owner.pop_back();
  return owner.empty() ? "unknown" : owner;
}

absl::Status sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = fd >= 0 && ::fsync(fd) == 0 ? 0 : errno;
  if (fd >= 0) ::close(fd);
  return error == 0 ? absl::OkStatus() : folder_error(error, "sync", path);
}

// The mark and its complement, so that a file of zeros or of half a number claims nothing.
struct Mark {
  uint64_t sequence = 0;
  uint64_t complement = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoreFolder>> StoreFolder::open(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty()) return absl::InvalidArgumentError("the store's folder has no name");
  if (absl::Status made = make_folder(path); !made.ok()) return made;

  const std::string lock_path = path + "/lock";
  const int lock_fd = open_file(lock_path);
  if (lock_fd < 0) return folder_error(errno, "write to", lock_path);
  if (::flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string owner = read_owner(lock_fd);
    ::close(lock_fd);
    if (error != EWOULDBLOCK) return folder_error(error, "lock", lock_path);
    return absl::FailedPreconditionError(
        absl::StrCat("another process (pid ", owner, ") is using ", path,
                     "; stop it, or give this one a folder of its own"));
  }
  // The pid only serves the message above: a disk too full for it is found out by the first write.
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(lock_fd, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(lock_fd, pid.data(), pid.size(), 0);
  }

  const std::string synced_path = path + "/synced";
  const int synced_fd = open_file(synced_path);
  if (synced_fd < 0) {
    const int error = errno;
    ::close(lock_fd);
    return folder_error(error, "write to", synced_path);
  }
  return std::unique_ptr<StoreFolder>(new StoreFolder(std::move(path), lock_fd, synced_fd));
}

StoreFolder::~StoreFolder() {
  ::close(synced_fd_);
  ::close(lock_fd_);
}

absl::StatusOr<bool> StoreFolder::has_database() const {
  std::error_code error;
  const bool exists = std::filesystem::exists(database(), error);
  if (error) return folder_error(error.value(), "look at", database());
  return exists;
}

absl::Status StoreFolder::clear_new_database() {
  std::error_code error;
  std::filesystem::remove_all(new_database(), error);
  return error ? folder_error(error.value(), "remove", new_database()) : absl::OkStatus();
}

absl::Status StoreFolder::adopt_new_database() {
  if (::rename(new_database().c_str(), database().c_str()) != 0) {
    return folder_error(errno, "rename", new_database());
  }
  if (absl::Status synced = sync_folder(path_); !synced.ok()) return synced;
  // The folder itself may be new as well.
  const std::string parent = std::filesystem::absolute(path_).parent_path().string();
  return sync_folder(parent);
}

std::optional<uint64_t> StoreFolder::read_synced() const {
  Mark mark;
  if (::pread(synced_fd_, &mark, sizeof(mark), 0) != sizeof(mark)) return std::nullopt;
  if (mark.sequence != ~mark.complement) return std::nullopt;
  return mark.sequence;
}

absl::Status StoreFolder::write_synced(uint64_t sequence) {
  const Mark mark{sequence, ~sequence};
  const ssize_t written = ::pwrite(synced_fd_, &mark, sizeof(mark), 0);
  if (written == sizeof(mark)) return absl::OkStatus();
  return folder_error(written < 0 ? errno : ENOSPC, "write to", synced_mark());
}

}  // namespace fairlead::store
