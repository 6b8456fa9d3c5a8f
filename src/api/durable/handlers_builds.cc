// Builds: the workers of a task queue by the build id that they registered with. An operator drains
// one before its workers are removed; they finish what they have and get nothing new.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

json::value build_or_null(const std::string& build) {
  return build.empty() ? json::value() : json::value(build);
}

// A row's key is the namespace, the queue and the build id, of which none has a line break: what a
// client sends with one is refused.
std::string row_key(const std::tuple<std::string, std::string, std::string>& build) {
  return absl::StrCat(std::get<0>(build), "\n", std::get<1>(build), "\n", std::get<2>(build));
}

struct Cohort {
  int64_t active = 0;
  int64_t draining = 0;
  int64_t stale = 0;
  std::set<std::string> runtimes;
  std::set<std::string> sdk_versions;
  TimeNs first_seen = 0;
  TimeNs last_heard = 0;
};

const char* rollout_status(const Cohort& cohort) {
  if (cohort.active > 0) return cohort.draining > 0 ? "active_with_draining" : "active";
  if (cohort.draining > 0) return "draining";
  return cohort.stale > 0 ? "stale_only" : "no_workers";
}

json::array strings_of(const std::set<std::string>& set) {
  json::array strings;
  for (const auto& each : set) strings.emplace_back(each);
  return strings;
}

}  // namespace

void Door::Impl::load_builds() {
  for (const auto& [key, row] : rows_.load(shard::WorkerRow::kBuild)) {
    const std::vector<std::string> parts = absl::StrSplit(key, '\n');
    const auto parsed = parse_json(row);
    if (parts.size() != 3 || !parsed.has_value() || !parsed->is_object()) continue;
    drained_[{parts[0], parts[1], parts[2]}] =
        integer_of(parsed->as_object(), "drained_ns").value_or(0);
  }
}

int64_t Door::Impl::forget_builds(const std::string& ns) {
  return static_cast<int64_t>(std::erase_if(drained_, [&](const auto& build) {
    if (std::get<0>(build.first) != ns) return false;
    rows_.erase(shard::WorkerRow::kBuild, row_key(build.first));
    return true;
  }));
}

bool Door::Impl::is_draining(const std::string& ns, const Worker& worker) const {
  return !drained_.empty() && drained_.contains({ns, worker.queue, worker.build_id});
}

void Door::Impl::list_builds(CallPtr call) {
  const std::string& ns = call->ns->name();
  const std::string& queue = call->arg(0);
  std::map<std::string, Cohort> cohorts;
  for (const auto& [build, since] : drained_) {
    if (std::get<0>(build) == ns && std::get<1>(build) == queue) cohorts[std::get<2>(build)];
  }
  const std::string prefix = absl::StrCat(ns, "\n");
  for (auto at = workers_.lower_bound(prefix); at != workers_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    const auto& worker = at->second;
    if (worker.queue != queue) continue;
    auto& cohort = cohorts[worker.build_id];
    const bool is_stale = worker.is_stale(now(), options_.stale_after());
    ++(is_stale ? cohort.stale : is_draining(ns, worker) ? cohort.draining : cohort.active);
    cohort.runtimes.insert(worker.runtime);
    if (!worker.sdk_version.empty()) cohort.sdk_versions.insert(worker.sdk_version);
    if (cohort.first_seen == 0 || worker.registered_ns < cohort.first_seen) {
      cohort.first_seen = worker.registered_ns;
    }
    cohort.last_heard = std::max(cohort.last_heard, worker.heard_ns);
  }
  json::array builds;
  for (const auto& [id, cohort] : cohorts) {
    const auto drained = drained_.find({ns, queue, id});
    const bool drains = drained != drained_.end();
    builds.emplace_back(
        json::object{{"build_id", build_or_null(id)},
                     {"rollout_status", rollout_status(cohort)},
                     {"drain_intent", drains ? "draining" : "active"},
                     {"drained_at", drains ? time_or_null(drained->second) : json::value()},
                     {"active_worker_count", cohort.active},
                     {"draining_worker_count", cohort.draining},
                     {"stale_worker_count", cohort.stale},
                     {"total_worker_count", cohort.active + cohort.draining + cohort.stale},
                     {"runtimes", strings_of(cohort.runtimes)},
                     {"sdk_versions", strings_of(cohort.sdk_versions)},
                     {"last_heartbeat_at", time_or_null(cohort.last_heard)},
                     {"first_seen_at", time_or_null(cohort.first_seen)},
                     {"promoted_at", nullptr},
                     {"new_start_selected", false}});
  }
  call->answer(200, {{"namespace", ns},
                     {"task_queue", queue},
                     {"stale_after_seconds", options_.stale_after() / kSecond},
                     {"build_ids", std::move(builds)}});
}

void Door::Impl::change_build(CallPtr call, bool drains) {
  const auto* given = call->body.if_contains("build_id");
  const bool is_fine = given != nullptr && (given->is_null() || given->is_string());
  const std::string id = is_fine && given->is_string() ? to_std(given->as_string()) : "";
  if (!is_fine || id.size() > 255 || id.find('\n') != id.npos) {
    return call->invalid("build_id", "build_id must be a string of at most 255 bytes, or null");
  }
  const std::string& ns = call->ns->name();
  const std::string& queue = call->arg(0);
  if (queue.size() > 255 || queue.find('\n') != queue.npos) {
    return call->invalid("task_queue", "task_queue must be 1 to 255 bytes");
  }
  const std::tuple build{ns, queue, id};
  // Asked again, it stays as it is, and so does the time.
  if (drains) {
    drained_.emplace(build, now());
  } else {
    drained_.erase(build);
  }
  for (const auto& [key, worker] : workers_) {
    if (!key.starts_with(absl::StrCat(ns, "\n"))) continue;
    if (worker.queue != queue || worker.build_id != id) continue;
    engine_.admission().drain_worker(call->ns_num(), queue, worker.id, drains);
    if (drains) end_polls(key);
  }
  const auto since = drains ? drained_.at(build) : TimeNs{0};
  json::object answer{{"namespace", ns},
                      {"task_queue", queue},
                      {"build_id", build_or_null(id)},
                      {"drain_intent", drains ? "draining" : "active"},
                      {"drained_at", time_or_null(since)},
                      {"promoted_at", nullptr},
                      {"new_start_selected", false}};
  auto done = once_durable(200, call, std::move(answer));
  if (!drains) return rows_.erase(shard::WorkerRow::kBuild, row_key(build), std::move(done));
  rows_.put(shard::WorkerRow::kBuild, row_key(build),
            json::serialize(json::object{{"drained_ns", since}}), std::move(done));
}

}  // namespace fairlead::durable
