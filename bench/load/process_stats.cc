#include "load/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace fairlead::load {

namespace {

// Fields 14 and 15 of /proc/<pid>/stat. The second field is the program's name in parentheses and
// may itself hold spaces, so counting begins behind the last parenthesis.
std::optional<DurationNs> read_cpu(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return (user + system) * (kSecond / sysconf(_SC_CLK_TCK));
}

DurationNs nanoseconds(const timeval& time) { return time.tv_sec * kSecond + time.tv_usec * 1000; }

}  // namespace

std::optional<ProcessStats> read_process(int pid) {
  if (pid <= 0) return std::nullopt;
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto cpu = read_cpu(folder);
  if (!cpu) return std::nullopt;
  ProcessStats stats;
  stats.cpu = *cpu;
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) stats.rss_bytes = std::atoll(line.c_str() + 6) * 1024;
    if (line.starts_with("VmHWM:")) stats.rss_peak_bytes = std::atoll(line.c_str() + 6) * 1024;
  }
  return stats;
}

DurationNs own_cpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

}  // namespace fairlead::load
