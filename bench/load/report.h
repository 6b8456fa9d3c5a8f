#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "load/process_stats.h"

namespace fairlead::load {

// The figures of one run, in the order in which they were added. A name ends with its unit.
class Report {
 public:
  void text(const std::string& name, const std::string& value);
  void count(const std::string& name, int64_t value);
  void number(const std::string& name, double value);

  // `as_json`: one object on one line. Otherwise a figure per line.
  void print(bool as_json) const;

 private:
  struct Figure {
    std::string name;
    std::string value;
    bool is_text;
  };
  std::vector<Figure> figures_;
};

// Durations, gathered to ask for percentiles.
class Latencies {
 public:
  void add(DurationNs latency) { all_.push_back(latency); }
  // Adds <name>_p50_ms and <name>_p99_ms; nothing when there were none.
  void report(Report* report, const std::string& name);

 private:
  std::vector<DurationNs> all_;
};

// What a stretch of time cost the server and us, per unit of work.
class Meter {
 public:
  // Begins now. `server_pid` 0: the server's part stays out.
  explicit Meter(int server_pid);

  // Ends the stretch. The server's CPU is read here too, before anything else is done.
  void stop();
  double seconds() const { return static_cast<double>(elapsed_) / kSecond; }
  // Of one core; 0 without a server's pid.
  double server_cpu_percent() const;

  // Adds rate, CPU per unit and memory, e.g. for unit "workflow": workflows_per_s, …
  void report(Report* report, const std::string& unit, int64_t units) const;
  // Adds the server's CPU in per cent of one core, and its memory.
  void report_load(Report* report) const;

 private:
  int server_pid_;
  std::optional<ProcessStats> before_;
  std::optional<ProcessStats> after_;
  DurationNs own_cpu_;
  TimeNs started_;
  DurationNs elapsed_ = 0;
};

}  // namespace fairlead::load
