// Builds: the workers of a task queue by the build id that they registered with. An operator drains
// one before its workers are removed; they finish what they have and get nothing new. Promoting one
// gives it the runs that are started from then on: they carry its id as their marker, and only its
// workers get their tasks.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

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
    const std::tuple build{parts[0], parts[1], parts[2]};
    const auto drained = integer_of(parsed->as_object(), "drained_ns").value_or(0);
    if (drained > 0) drained_[build] = drained;
    const auto promoted = integer_of(parsed->as_object(), "promoted_ns").value_or(0);
    if (promoted > 0) promoted_[build] = promoted;
  }
}

// What is known of a build is one row. Nothing known: none.
void Door::Impl::save_build(const BuildName& build, Job done) {
  json::object row;
  if (const auto drained = drained_.find(build); drained != drained_.end()) {
    row["drained_ns"] = drained->second;
  }
  if (const auto promoted = promoted_.find(build); promoted != promoted_.end()) {
    row["promoted_ns"] = promoted->second;
  }
  if (row.empty()) return rows_.erase(shard::WorkerRow::kBuild, row_key(build), std::move(done));
  rows_.put(shard::WorkerRow::kBuild, row_key(build), json::serialize(row), std::move(done));
}

// The build that was promoted last has the new runs of its queue, unless it is being drained: its
// workers would never get their tasks.
std::string Door::Impl::selected_build(const std::string& ns, const std::string& queue) const {
  const BuildName* selected = nullptr;
  TimeNs last = 0;
  for (auto at = promoted_.lower_bound({ns, queue, ""}); at != promoted_.end(); ++at) {
    if (std::get<0>(at->first) != ns || std::get<1>(at->first) != queue) break;
    if (at->second <= last) continue;
    last = at->second;
    selected = &at->first;
  }
  if (selected == nullptr || drained_.contains(*selected)) return "";
  return std::get<2>(*selected);
}

json::object Door::Impl::build_state(const BuildName& build) const {
  const auto drained = drained_.find(build);
  const auto promoted = promoted_.find(build);
  const bool drains = drained != drained_.end();
  const bool is_promoted = promoted != promoted_.end();
  const auto& [ns, queue, id] = build;
  return {{"drain_intent", drains ? "draining" : "active"},
          {"drained_at", drains ? time_or_null(drained->second) : json::value()},
          {"promoted_at", is_promoted ? time_or_null(promoted->second) : json::value()},
          {"new_start_selected", is_promoted && !drains && selected_build(ns, queue) == id}};
}

// Gives how many of them were draining.
int64_t Door::Impl::forget_builds(const std::string& ns) {
  std::set<BuildName> known;
  const auto forget = [&](std::map<BuildName, TimeNs>& builds) {
    return std::erase_if(builds, [&](const auto& build) {
      if (std::get<0>(build.first) != ns) return false;
      known.insert(build.first);
      return true;
    });
  };
  const size_t drained = forget(drained_);
  forget(promoted_);
  for (const auto& build : known) rows_.erase(shard::WorkerRow::kBuild, row_key(build));
  return static_cast<int64_t>(drained);
}

bool Door::Impl::is_draining(const std::string& ns, const Worker& worker) const {
  return !drained_.empty() && drained_.contains({ns, worker.queue, worker.build_id});
}

void Door::Impl::list_builds(CallPtr call) {
  const std::string& ns = call->ns->name();
  const std::string& queue = call->arg(0);
  std::map<std::string, Cohort> cohorts;
  for (const auto* builds : {&drained_, &promoted_}) {
    for (const auto& [build, since] : *builds) {
      if (std::get<0>(build) == ns && std::get<1>(build) == queue) cohorts[std::get<2>(build)];
    }
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
    json::object build{{"build_id", text_or_null(id)},
                       {"rollout_status", rollout_status(cohort)},
                       {"active_worker_count", cohort.active},
                       {"draining_worker_count", cohort.draining},
                       {"stale_worker_count", cohort.stale},
                       {"total_worker_count", cohort.active + cohort.draining + cohort.stale},
                       {"runtimes", strings_of(cohort.runtimes)},
                       {"sdk_versions", strings_of(cohort.sdk_versions)},
                       {"last_heartbeat_at", time_or_null(cohort.last_heard)},
                       {"first_seen_at", time_or_null(cohort.first_seen)}};
    for (const auto& field : build_state({ns, queue, id})) build[field.key()] = field.value();
    builds.emplace_back(std::move(build));
  }
  call->answer(200, {{"namespace", ns},
                     {"task_queue", queue},
                     {"stale_after_seconds", options_.stale_after() / kSecond},
                     {"build_ids", std::move(builds)}});
}

void Door::Impl::change_build(CallPtr call, BuildVerb verb) {
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
  const BuildName build{ns, queue, id};
  const bool drains = verb == BuildVerb::kDrain;
  // Asked again, it stays as it is, and so does the time.
  if (drains) {
    drained_.emplace(build, now());
  } else {
    drained_.erase(build);
  }
  const bool is_selected = promoted_.contains(build) && selected_build(ns, queue) == id;
  if (verb == BuildVerb::kPromote && !is_selected) {
    // Of two at the same moment the later one counts.
    TimeNs last = 0;
    for (const auto& [other, since] : promoted_) last = std::max(last, since);
    promoted_[build] = std::max(now(), last + 1);
  }
  for (const auto& [key, worker] : workers_) {
    if (!key.starts_with(absl::StrCat(ns, "\n"))) continue;
    if (worker.queue != queue || worker.build_id != id) continue;
    engine_.admission().drain_worker(call->ns_num(), queue, worker.id, drains);
    if (drains) end_polls(key);
  }
  json::object answer{{"namespace", ns}, {"task_queue", queue}, {"build_id", text_or_null(id)}};
  for (const auto& field : build_state(build)) answer[field.key()] = field.value();
  save_build(build, once_durable(200, call, std::move(answer)));
}

}  // namespace fairlead::durable
