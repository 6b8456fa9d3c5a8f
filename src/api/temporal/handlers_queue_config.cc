#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/handler.h"
#include "api/temporal/queue_handlers.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "google/protobuf/util/time_util.h"
#include "model/bytes.h"
#include "queue/priority.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// UpdateTaskQueueConfig: limits and weights, changed as a whole or not at all.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using model::QueueRules;
using temporal::api::taskqueue::v1::RateLimitConfig;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

constexpr int64_t kReasonBytesMax = 1'000;
constexpr size_t kOverridesMax = 1'000;

absl::Status check_text(const std::string& field, const std::string& text, int64_t bytes_max) {
  if (static_cast<int64_t>(text.size()) <= bytes_max) return absl::OkStatus();
  return invalid_argument(absl::StrCat(field, " field too long (max ", bytes_max, " characters)."));
}

absl::Status check_queue(const UpdateTaskQueueConfigRequest& request, int64_t id_max) {
  const std::string& name = request.task_queue();
  if (name.starts_with("/_sys/")) {
    return invalid_argument(
        absl::StrCat("task queue family name cannot have prefix /_sys/ ", name));
  }
  FL_TRY(check_task_queue_name(name, id_max));
  switch (request.task_queue_type()) {
    case TASK_QUEUE_TYPE_WORKFLOW:
    case TASK_QUEUE_TYPE_ACTIVITY:
    case TASK_QUEUE_TYPE_NEXUS:
      return absl::OkStatus();
    case TASK_QUEUE_TYPE_UNSPECIFIED:
      return invalid_argument("task queue type is not set");
    default:
      return invalid_argument(absl::StrCat("task queue type ",
                                           static_cast<int>(request.task_queue_type()),
                                           " is unknown; there are 1, 2 and 3"));
  }
}

absl::Status check_limit(const UpdateTaskQueueConfigRequest::RateLimitUpdate& update,
                         const char* name) {
  // Written as "not at least zero" so that NaN is refused too.
  if (!(update.rate_limit().requests_per_second() >= 0)) {
    return invalid_argument(
        absl::StrCat("RequestsPerSecond for ", name, " rate limit must be non-negative."));
  }
  return check_text(absl::StrCat(name, ".Reason"), update.reason(), kReasonBytesMax);
}

// A workflow queue may lose a limit but never get one.
absl::Status check_limits(const UpdateTaskQueueConfigRequest& request) {
  const bool is_workflow = request.task_queue_type() == TASK_QUEUE_TYPE_WORKFLOW;
  const auto& of_queue = request.update_queue_rate_limit();
  if (is_workflow && of_queue.has_rate_limit()) {
    return invalid_argument("Setting rate limit on workflow task queues is not allowed.");
  }
  FL_TRY(check_limit(of_queue, "UpdateQueueRateLimit"));
  const auto& of_keys = request.update_fairness_key_rate_limit_default();
  if (is_workflow && of_keys.has_rate_limit()) {
    return invalid_argument(
        "Setting fairness key rate limit on workflow task queues is not allowed.");
  }
  return check_limit(of_keys, "UpdateFairnessKeyRateLimitDefault");
}

absl::Status check_key(const std::string& key, bool allows_unkeyed) {
  if (key.empty() && !allows_unkeyed) {
    return invalid_argument("fairness weight override key must not be empty");
  }
  if (key.size() <= queue::kFairnessKeyBytesMax) return absl::OkStatus();
  return invalid_argument("fairness key length exceeds limit");
}

absl::Status check_weights(const UpdateTaskQueueConfigRequest& request, bool allows_unkeyed) {
  const auto& set = request.set_fairness_weight_overrides();
  const auto& unset = request.unset_fairness_weight_overrides();
  const size_t entries = set.size() + static_cast<size_t>(unset.size());
  if (entries > kOverridesMax) {
    return invalid_argument(absl::StrCat("too many fairness weight overrides in request: got ",
                                         entries, ", maximum ", kOverridesMax));
  }
  for (const auto& [key, weight] : set) {
    FL_TRY(check_key(key, allows_unkeyed));
    if (!(weight > 0) || std::isinf(weight)) {
      // The doubled word is the reference's.
      return invalid_argument(absl::StrCat("invalid fairness weight weight for key \"",
                                           absl::Utf8SafeCEscape(key),
                                           "\": must be greater than zero"));
    }
  }
  for (const std::string& key : unset) {
    FL_TRY(check_key(key, allows_unkeyed));
    if (!set.contains(key)) continue;
    return invalid_argument(absl::StrCat("fairness weight override key \"",
                                         absl::Utf8SafeCEscape(key),
                                         "\" present in both set and unset lists"));
  }
  return absl::OkStatus();
}

bool is_change(const UpdateTaskQueueConfigRequest& request) {
  return request.has_update_queue_rate_limit() ||
         request.has_update_fairness_key_rate_limit_default() ||
         !request.set_fairness_weight_overrides().empty() ||
         !request.unset_fairness_weight_overrides().empty();
}

// An update without a limit removes it. What remains says who did so, and why.
void set_limit(const UpdateTaskQueueConfigRequest::RateLimitUpdate& update,
               const std::string& identity, TimeNs now, QueueRules::Limit& limit) {
  limit.Clear();
  if (update.has_rate_limit()) {
    // Minus zero is a zero, too, but not one that a rate can be divided by.
    limit.set_per_second(std::abs(update.rate_limit().requests_per_second()));
  }
  limit.set_reason(update.reason());
  limit.set_identity(identity);
  limit.set_updated_ns(now);
}

absl::Status apply(const UpdateTaskQueueConfigRequest& request, QueueRules& rules, TimeNs now) {
  auto weights = rules.weights();
  for (const std::string& key : request.unset_fairness_weight_overrides()) weights.erase(key);
  for (const auto& [key, weight] : request.set_fairness_weight_overrides()) weights[key] = weight;
  if (weights.size() > kOverridesMax) {
    return invalid_argument(
        "fairness weight overrides update rejected: exceeding maximum key size");
  }
  *rules.mutable_weights() = std::move(weights);
  if (request.has_update_queue_rate_limit()) {
    set_limit(request.update_queue_rate_limit(), request.identity(), now,
              *rules.mutable_queue_limit());
  }
  if (request.has_update_fairness_key_rate_limit_default()) {
    set_limit(request.update_fairness_key_rate_limit_default(), request.identity(), now,
              *rules.mutable_key_limit());
  }
  return absl::OkStatus();
}

std::string encode(const QueueRules& rules) {
  UpdateTaskQueueConfigResponse response;
  write_queue_config(rules, *response.mutable_config());
  return model::stable_bytes(response);
}

absl::Status update_config(Service& service, UpdateTaskQueueConfigRequest& request,
                           const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_queue(request, id_max));
  FL_TRY(check_limits(request));
  FL_TRY(check_text("Identity", request.identity(), id_max));
  FL_TRY(check_weights(request, allows_override_of_unkeyed(*ns)));
  if (request.task_queue_type() == TASK_QUEUE_TYPE_NEXUS) {
    if (is_change(request)) {
      return errors::unimplemented("Nexus task queues are not implemented by this server");
    }
    succeed(*call, encode({}));
    return absl::OkStatus();
  }
  const bool is_workflow = request.task_queue_type() == TASK_QUEUE_TYPE_WORKFLOW;
  shard::QueueRef queue = {.ns = number_of(ns),
                           .kind = is_workflow ? model::WORKFLOW_TASK : model::ACTIVITY_TASK,
                           .name = request.task_queue()};
  // To change nothing is to ask; it leaves no rules behind where there were none.
  if (!is_change(request)) {
    service.engine.describe_queue(std::move(queue),
                                  answer<shard::QueueView>(call, [](const shard::QueueView& view) {
                                    return encode(view.rules);
                                  }));
    return absl::OkStatus();
  }
  service.engine.change_rules(
      {.queue = std::move(queue),
       .change = [request = UpdateTaskQueueConfigRequest(request)](
                     QueueRules& rules, TimeNs now) { return apply(request, rules, now); }},
      answer<QueueRules>(call, encode));
  return absl::OkStatus();
}

void write_limit(const QueueRules::Limit& limit, RateLimitConfig& config) {
  if (limit.has_per_second()) {
    config.mutable_rate_limit()->set_requests_per_second(static_cast<float>(limit.per_second()));
  }
  auto& metadata = *config.mutable_metadata();
  metadata.set_reason(limit.reason());
  metadata.set_update_identity(limit.identity());
  *metadata.mutable_update_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(limit.updated_ns());
}

}  // namespace

bool allows_override_of_unkeyed(const model::NamespaceRow& ns) {
  const auto found = ns.data().find("fairlead.allow_override_of_unkeyed");
  return found != ns.data().end() && found->second == "on";
}

void write_queue_config(const QueueRules& rules,
                        temporal::api::taskqueue::v1::TaskQueueConfig& config) {
  if (rules.has_queue_limit()) write_limit(rules.queue_limit(), *config.mutable_queue_rate_limit());
  if (rules.has_key_limit()) {
    write_limit(rules.key_limit(), *config.mutable_fairness_keys_rate_limit_default());
  }
  *config.mutable_fairness_weight_overrides() = rules.weights();
}

void add_queue_config_handlers(Registrar& registrar) { registrar.serve(update_config); }

}  // namespace fairlead::api
