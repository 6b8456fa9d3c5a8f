#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace fairlead::load {

// What the kernel knows of a process at one moment.
struct ProcessStats {
  // User and system time. The kernel counts in ticks of 10 ms, so measure over seconds.
  DurationNs cpu = 0;
  int64_t rss_bytes = 0;
  int64_t rss_peak_bytes = 0;
};

// Reads /proc/<pid>. Nothing when there is no such process, or no pid was given (0).
std::optional<ProcessStats> read_process(int pid);

// CPU time that this process has used.
DurationNs own_cpu();

}  // namespace fairlead::load
