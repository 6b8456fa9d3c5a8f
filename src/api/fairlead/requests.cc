#include "api/fairlead/requests.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "queue/priority.h"

namespace fairlead::api::queues {

namespace {

using errors::invalid_argument;

constexpr size_t kTextBytesMax = 1'000;

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

absl::StatusOr<model::TaskKind> read_type(v1::TaskQueueType type) {
  switch (type) {
    case v1::TASK_QUEUE_TYPE_UNSPECIFIED:
      return invalid_argument("task queue type is not set");
    case v1::TASK_QUEUE_TYPE_WORKFLOW:
      return model::WORKFLOW_TASK;
    case v1::TASK_QUEUE_TYPE_ACTIVITY:
      return model::ACTIVITY_TASK;
    default:
      return invalid_argument(absl::StrCat("task queue type ", static_cast<int>(type),
                                           " is unknown; 1 is workflow, 2 is activity"));
  }
}

}  // namespace

absl::StatusOr<shard::QueueRef> read_queue(const Service& service, const v1::TaskQueue& queue) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(queue.namespace_()));
  FL_TRY(check_task_queue_name(queue.name(), service.options.limits.id_bytes));
  shard::QueueRef ref;
  ref.ns = number_of(ns);
  FL_TRY_ASSIGN(ref.kind, read_type(queue.type()));
  ref.name = queue.name();
  return ref;
}

absl::Status check_key(const std::string& key) {
  if (key.size() <= queue::kFairnessKeyBytesMax) return absl::OkStatus();
  return invalid_argument(absl::StrCat("a fairness key of ", key.size(), " bytes is too long; ",
                                       queue::kFairnessKeyBytesMax, " are allowed"));
}

absl::Status check_text(const std::string& text, std::string_view field) {
  if (text.size() <= kTextBytesMax) return absl::OkStatus();
  return invalid_argument(absl::StrCat(to_absl(field), " of ", text.size(), " bytes is too long; ",
                                       kTextBytesMax, " are allowed"));
}

absl::Status check_rate(double per_second, std::string_view field) {
  if (std::isfinite(per_second) && per_second >= 0) return absl::OkStatus();
  return invalid_argument(
      absl::StrCat(to_absl(field), " of ", per_second,
                   " per second is not allowed; say 0 or more, or unset it to have no limit"));
}

absl::Status check_weight(float weight, const std::string& key, bool allows_unkeyed) {
  FL_TRY(check_key(key));
  // The reference's words: the other door says the same.
  if (key.empty() && !allows_unkeyed) {
    return invalid_argument("fairness weight override key must not be empty");
  }
  if (std::isfinite(weight) && weight > 0) return absl::OkStatus();
  return invalid_argument(absl::StrCat("fairness weight ", weight, " of key \"", key,
                                       "\" is not allowed; it must be greater than zero"));
}

absl::StatusOr<int> read_page_size(int page_size) {
  if (page_size < 0) {
    return invalid_argument(absl::StrCat("page_size ", page_size, " is negative"));
  }
  return page_size == 0 ? kPageDefault : std::min(page_size, kPageMax);
}

}  // namespace fairlead::api::queues
