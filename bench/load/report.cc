#include "load/report.h"

#include <algorithm>
#include <cstdio>

#include "load/transport.h"

namespace fairlead::load {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

double per_unit_ms(DurationNs total, int64_t units) {
  return static_cast<double>(total) / kMillisecond /
         static_cast<double>(std::max<int64_t>(units, 1));
}

}  // namespace

void Report::text(const std::string& name, const std::string& value) {
  figures_.push_back({name, value, true});
}

void Report::count(const std::string& name, int64_t value) {
  figures_.push_back({name, std::to_string(value), false});
}

void Report::number(const std::string& name, double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.3f", value);
  figures_.push_back({name, digits, false});
}

void Report::print(bool as_json) const {
  if (!as_json) {
    for (const Figure& figure : figures_) {
      std::printf("%-32s %s\n", figure.name.c_str(), figure.value.c_str());
    }
    return;
  }
  const char* separator = "{";
  for (const Figure& figure : figures_) {
    std::printf("%s%s: %s", separator, quoted(figure.name).c_str(),
                figure.is_text ? quoted(figure.value).c_str() : figure.value.c_str());
    separator = ", ";
  }
  std::printf("}\n");
}

void Latencies::report(Report* report, const std::string& name) {
  if (all_.empty()) return;
  std::sort(all_.begin(), all_.end());
  // The nearest rank: the smallest value that at least p per cent do not exceed.
  const auto percentile = [&](size_t p) {
    const size_t rank = (all_.size() * p + 99) / 100;
    return static_cast<double>(all_[std::max<size_t>(rank, 1) - 1]) / kMillisecond;
  };
  report->number(name + "_p50_ms", percentile(50));
  report->number(name + "_p99_ms", percentile(99));
}

Meter::Meter(int server_pid)
    : server_pid_(server_pid),
      before_(read_process(server_pid)),
      own_cpu_(own_cpu()),
      started_(monotonic_now()) {}

void Meter::stop() {
  elapsed_ = monotonic_now() - started_;
  own_cpu_ = own_cpu() - own_cpu_;
  after_ = read_process(server_pid_);
}

void Meter::report(Report* report, const std::string& unit, int64_t units) const {
  report->number("seconds", seconds());
  report->number(unit + "s_per_s", static_cast<double>(units) / seconds());
  if (before_ && after_) {
    report->number("server_cpu_ms_per_" + unit, per_unit_ms(after_->cpu - before_->cpu, units));
  }
  report->number("client_cpu_ms_per_" + unit, per_unit_ms(own_cpu_, units));
  report_load(report);
}

double Meter::server_cpu_percent() const {
  if (!before_ || !after_) return 0;
  return 100.0 * static_cast<double>(after_->cpu - before_->cpu) / static_cast<double>(elapsed_);
}

void Meter::report_load(Report* report) const {
  if (!before_ || !after_) return;
  report->number("server_cpu_percent", server_cpu_percent());
  report->number("server_rss_mib", static_cast<double>(after_->rss_bytes) / kMiB);
  report->number("server_rss_peak_mib", static_cast<double>(after_->rss_peak_bytes) / kMiB);
}

}  // namespace fairlead::load
