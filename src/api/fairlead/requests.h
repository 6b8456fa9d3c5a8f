#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/fairlead/task_queue.pb.h"
#include "api/temporal/handler.h"
#include "base/error.h"
#include "shard/queue_requests.h"

// What the requests of this service have in common, checked and in the engine's words. Refusals are
// InvalidArgument.
namespace fairlead::api::queues {

inline constexpr int kPageDefault = 100;
inline constexpr int kPageMax = 1'000;
inline constexpr int kWeightsMax = 1'000;
inline constexpr size_t kKeyRulesMax = 1'000;

absl::StatusOr<shard::QueueRef> read_queue(const Service& service, const v1::TaskQueue& queue);

absl::Status check_key(const std::string& key);
// The key of a request about one key.
template <typename Request>
absl::StatusOr<std::string> read_key(const Request& request) {
  if (!request.has_key()) {
    return errors::invalid_argument(
        "key is not set; the key of the tasks that carry none is \"\", and must be set as well");
  }
  if (auto status = check_key(request.key()); !status.ok()) return status;
  return request.key();
}

// `field` is how the request calls it.
absl::Status check_text(const std::string& text, std::string_view field);
absl::Status check_rate(double per_second, std::string_view field);
// `allows_unkeyed`: "" may have a weight, too.
absl::Status check_weight(float weight, const std::string& key, bool allows_unkeyed);

absl::StatusOr<int> read_page_size(int page_size);

}  // namespace fairlead::api::queues
