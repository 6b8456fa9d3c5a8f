#include "api/durable/run_status.h"

namespace fairlead::durable {

std::string_view status_of(const model::RunState& run) {
  switch (run.status()) {
    case model::COMPLETED:
    case model::CONTINUED_AS_NEW:
      return "completed";
    case model::FAILED:
    case model::TIMED_OUT:
      return "failed";
    case model::CANCELED:
      return "cancelled";
    case model::TERMINATED:
      return "terminated";
    default:
      if (run.last_completed_task_started_id() == 0) return "pending";
      return run.has_workflow_task() ? "running" : "waiting";
  }
}

std::string_view bucket_of(std::string_view status) {
  if (status == "completed") return "completed";
  if (status == "failed" || status == "cancelled" || status == "terminated") return "failed";
  return "running";
}

json::value closed_reason(const model::RunState& run) {
  switch (run.status()) {
    case model::COMPLETED:
      return "completed";
    case model::CONTINUED_AS_NEW:
      return "continued";
    case model::FAILED:
      return "failed";
    case model::TIMED_OUT:
      return "timed_out";
    case model::CANCELED:
      return "cancelled";
    case model::TERMINATED:
      return "terminated";
    default:
      return nullptr;
  }
}

}  // namespace fairlead::durable
