#include "api/temporal/workers.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "google/protobuf/util/time_util.h"

namespace fairlead::api {

namespace {

constexpr DurationNs kKept = 5 * kMinute;
constexpr size_t kWorkersMax = 100'000;
// Queues of workers that the system, and not the user, has made.
constexpr std::string_view kSystemQueue = "temporal-sys";

std::string status_of(const Workers::Heartbeat& worker) {
  switch (worker.status()) {
    case temporal::api::enums::v1::WORKER_STATUS_RUNNING:
      return "Running";
    case temporal::api::enums::v1::WORKER_STATUS_SHUTTING_DOWN:
      return "ShuttingDown";
    case temporal::api::enums::v1::WORKER_STATUS_SHUTDOWN:
      return "Shutdown";
    default:
      return "Unspecified";
  }
}

AttributeValue value_of(const Workers::Heartbeat& worker, std::string_view name) {
  if (name == "WorkerInstanceKey") return worker.worker_instance_key();
  if (name == "WorkerIdentity") return worker.worker_identity();
  if (name == "HostName") return worker.host_info().host_name();
  if (name == "TaskQueue") return worker.task_queue();
  if (name == "DeploymentName") return worker.deployment_version().deployment_name();
  if (name == "BuildId") return worker.deployment_version().build_id();
  if (name == "SdkName") return worker.sdk_name();
  if (name == "SdkVersion") return worker.sdk_version();
  if (name == "Status" || name == "WorkerStatus") return status_of(worker);
  using google::protobuf::util::TimeUtil;
  if (name == "StartTime" && worker.has_start_time()) {
    return TimeUtil::TimestampToNanoseconds(worker.start_time());
  }
  if (name == "HeartbeatTime" && worker.has_heartbeat_time()) {
    return TimeUtil::TimestampToNanoseconds(worker.heartbeat_time());
  }
  return {};
}

}  // namespace

AttributeType Workers::type_of(std::string_view attribute) {
  if (attribute == "StartTime" || attribute == "HeartbeatTime") return AttributeType::kTime;
  return std::holds_alternative<std::monostate>(value_of(Heartbeat(), attribute))
             ? AttributeType::kNone
             : AttributeType::kKeyword;
}

void Workers::forget(TimeNs now) {
  if (now < forget_at_) return;
  forget_at_ = now + kMinute;
  std::erase_if(workers_, [&](const auto& entry) { return entry.second.heard_at + kKept <= now; });
}

absl::Status Workers::put(NamespaceNum ns, const Heartbeat& heartbeat, TimeNs now) {
  if (heartbeat.worker_instance_key().empty()) {
    return errors::invalid_argument("WorkerInstanceKey is not set on heartbeat.");
  }
  const std::lock_guard lock(mutex_);
  forget(now);
  const Key key(ns, heartbeat.worker_instance_key());
  const auto found = workers_.find(key);
  if (heartbeat.status() == temporal::api::enums::v1::WORKER_STATUS_SHUTDOWN) {
    // It is its last one: there is nobody to ask after.
    if (found != workers_.end()) workers_.erase(found);
    return absl::OkStatus();
  }
  if (found != workers_.end()) {
    found->second = {heartbeat, now};
    return absl::OkStatus();
  }
  if (workers_.size() >= kWorkersMax) {
    return errors::concurrent_limit(
        absl::StrCat(kWorkersMax, " workers send heartbeats; no more are kept"));
  }
  workers_.emplace(key, Entry{heartbeat, now});
  return absl::OkStatus();
}

std::optional<Workers::Heartbeat> Workers::find(NamespaceNum ns, const std::string& instance_key,
                                                TimeNs now) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(Key(ns, instance_key));
  if (found == workers_.end() || found->second.heard_at + kKept <= now) return std::nullopt;
  return found->second.heartbeat;
}

std::vector<Workers::Heartbeat> Workers::list(NamespaceNum ns, const Filter& filter,
                                              bool with_system, const std::string& after,
                                              size_t max, TimeNs now) {
  const std::lock_guard lock(mutex_);
  std::vector<Heartbeat> found;
  auto at =
      after.empty() ? workers_.lower_bound(Key(ns, "")) : workers_.upper_bound(Key(ns, after));
  for (; at != workers_.end() && at->first.first == ns && found.size() < max; ++at) {
    const auto& [worker, heard_at] = at->second;
    if (heard_at + kKept <= now) continue;
    if (!with_system && worker.task_queue().starts_with(kSystemQueue)) continue;
    const auto look = [&worker = worker](std::string_view name) { return value_of(worker, name); };
    if (filter.matches(look)) found.push_back(worker);
  }
  return found;
}

}  // namespace fairlead::api
