#include "server/simulate_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/logging.h"
#include "server/table.h"

namespace fairlead::server {

namespace {

using simulate::KeyResult;
using simulate::Plan;
using simulate::Result;

std::string percent(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : "-";
}

std::string seconds(double ns) { return absl::StrFormat("%.2f s", ns / kSecond); }

// How many workers it kept busy on average.
double workers_of(const KeyResult& key, const Plan& plan) {
  return static_cast<double>(key.worked) / static_cast<double>(plan.duration);
}

// Keys that are alike, as if they were one.
KeyResult sum(const Plan& plan, const Result& result, size_t group) {
  KeyResult all;
  all.level = plan.keys[group].level;
  all.key = plan.keys[group].text();
  for (const auto& key : result.keys) {
    if (key.group != group) continue;
    all.weight = key.weight;
    all.arrived += key.arrived;
    all.dispatched += key.dispatched;
    all.due += key.due;
    all.distance_max = std::max(all.distance_max, key.distance_max);
    all.worked += key.worked;
    all.wait_sum += key.wait_sum;
    all.wait_max = std::max(all.wait_max, key.wait_max);
  }
  return all;
}

std::string json_of(const KeyResult& key, const Plan& plan, const Result& result) {
  const double total = std::max<double>(1, static_cast<double>(result.dispatched));
  return absl::StrFormat(
      R"({"key": "%s", "priority": %d, "weight": %g, "arrived": %d, "dispatched": %d, )"
      R"("waiting": %d, "share": %.6f, "ideal_share": %s, "furthest_from_ideal_tasks": %s, )"
      R"("workers": %.3f, "wait_mean_s": %.3f, "wait_max_s": %.3f})",
      json_escape(key.key), key.level, key.weight, key.arrived, key.dispatched,
      key.arrived - key.dispatched, static_cast<double>(key.dispatched) / total,
      plan.has_ideal() ? absl::StrFormat("%.6f", key.due / total) : "null",
      plan.has_ideal() ? absl::StrFormat("%.3f", key.distance_max) : "null", workers_of(key, plan),
      key.wait_mean() / kSecond, static_cast<double>(key.wait_max) / kSecond);
}

// Tasks dispatched in each tenth of the time, which ends where its column says.
Table tenths(const Plan& plan, const Result& result) {
  constexpr size_t kTenths = 10;
  const auto& samples = result.samples;
  const auto sample_after = [&](size_t tenths) -> const simulate::Sample& {
    return samples[(samples.size() - 1) * tenths / kTenths];
  };
  std::vector<std::string> titles = {"TASKS UNTIL"};
  for (size_t i = 1; i <= kTenths; ++i) {
    const double until = static_cast<double>(sample_after(i).at) / kSecond;
    titles.push_back(absl::StrFormat(">%g s", until));
  }
  Table table(titles);
  for (size_t group = 0; group < plan.keys.size(); ++group) {
    std::vector<std::string> row = {plan.keys[group].text()};
    for (size_t i = 1; i <= kTenths; ++i) {
      row.push_back(
          absl::StrCat(sample_after(i).dispatched[group] - sample_after(i - 1).dispatched[group]));
    }
    table.add(row);
  }
  return table;
}

}  // namespace

std::string simulation_text(const Plan& plan, const Result& result) {
  Table table({"KEY", ">PRIORITY", ">WEIGHT", ">ARRIVED", ">DISPATCHED", ">WAITING", ">SHARE",
               ">IDEAL", ">FURTHEST", ">WORKERS", ">MEAN WAIT", ">LONGEST"});
  const auto total = static_cast<double>(result.dispatched);
  for (size_t group = 0; group < plan.keys.size(); ++group) {
    const auto key = sum(plan, result, group);
    table.add({key.key, absl::StrCat(key.level), absl::StrCat(key.weight),
               absl::StrCat(key.arrived), absl::StrCat(key.dispatched),
               absl::StrCat(key.arrived - key.dispatched),
               percent(static_cast<double>(key.dispatched), total),
               plan.has_ideal() ? percent(key.due, total) : "-",
               plan.has_ideal() ? absl::StrFormat("%.2f", key.distance_max) : "-",
               absl::StrFormat("%.1f", workers_of(key, plan)), seconds(key.wait_mean()),
               seconds(static_cast<double>(key.wait_max))});
  }
  return absl::StrCat(
      plan.title.empty() ? "" : absl::StrCat(printable(plan.title), "\n"),
      absl::StrFormat("%g s, %d workers, %d tasks dispatched, workers busy %s of their time\n\n",
                      static_cast<double>(plan.duration) / kSecond, plan.workers, result.dispatched,
                      percent(result.busy, 1)),
      table.text(), "\n", tenths(plan, result).text());
}

std::string simulation_json(const Plan& plan, const Result& result) {
  std::vector<std::string> keys;
  for (const auto& key : result.keys) keys.push_back(json_of(key, plan, result));
  return absl::StrFormat(
      "{\"title\": \"%s\", \"duration_s\": %g, \"workers\": %d, \"seed\": %d, \"dispatched\": %d, "
      "\"busy\": %.6f, \"keys\": [\n  %s\n]}\n",
      json_escape(plan.title), static_cast<double>(plan.duration) / kSecond, plan.workers,
      plan.seed, result.dispatched, result.busy, absl::StrJoin(keys, ",\n  "));
}

}  // namespace fairlead::server
