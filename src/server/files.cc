#include "server/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fairlead::server {

absl::StatusOr<std::string> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  // Opening a folder succeeds and reading it does not.
  if (file) file.peek();
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": cannot be read: ", std::strerror(errno)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace fairlead::server
