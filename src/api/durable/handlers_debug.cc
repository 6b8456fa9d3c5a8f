// One look at a run for whoever asks why it does not go on.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "api/durable/run_status.h"

namespace fairlead::durable {

namespace {

json::object finding(const char* severity, const char* code, std::string message) {
  return {{"severity", severity}, {"code", code}, {"message", std::move(message)}};
}

json::array workflow_tasks_of(const model::RunState& run, TimeNs now) {
  if (!run.has_workflow_task()) return {};
  const auto& task = run.workflow_task();
  const bool is_leased = task.started_id() != 0;
  const TimeNs expires = is_leased ? task.renewed_ns() + task.start_to_close_ns() : 0;
  return {json::object{
      {"task_id", TaskName{'w', task.scheduled_id(), run.run_id(), run.workflow_id()}.text()},
      {"task_type", "workflow"},
      {"task_status", is_leased ? "leased" : "ready"},
      {"status", is_leased ? "leased" : "ready"},
      {"current_attempt", task.attempt()},
      {"lease_owner", is_leased ? json::value(task.identity()) : json::value()},
      {"lease_expires_at", time_or_null(expires)},
      {"lease_expired", is_leased && expires <= now},
      {"available_at", format_time(std::max(task.available_ns(), task.scheduled_ns()))}}};
}

json::array activities_of(const std::vector<model::ActivityState>& activities) {
  json::array shown;
  for (const auto& activity : activities) {
    const bool is_leased = activity.started_ns() != 0;
    json::object record{
        {"activity_execution_id", activity.scheduled().activity_id()},
        {"activity_type", activity.scheduled().activity_type()},
        {"sequence", activity.scheduled().step().sequence()},
        {"task_queue", known_queue(activity.scheduled().task_queue())},
        {"status", is_leased ? "running" : "pending"},
        {"current_attempt", activity.attempt()},
        {"lease_owner", is_leased ? json::value(activity.started_identity()) : json::value()},
        {"available_at", format_time(activity.scheduled_ns())},
        {"deadlines", deadlines_of(activity)}};
    if (activity.has_last_failure()) record["last_failure"] = activity.last_failure().message();
    shown.emplace_back(std::move(record));
  }
  return shown;
}

}  // namespace

void Door::Impl::debug(CallPtr call) {
  constexpr size_t kWithRun = 2;
  engine_.describe_workflow(
      run_of(*call, kWithRun),
      here<shard::RunView>([this, call](absl::StatusOr<shard::RunView> found) {
        if (!found.ok()) {
          if (!absl::IsNotFound(found.status()) && !absl::IsInvalidArgument(found.status())) {
            return call->refuse(found.status());
          }
          return call->refuse(404,
                              call->args.size() < kWithRun ? "instance_not_found" : "run_not_found",
                              std::string(found.status().message()));
        }
        const auto view = std::make_shared<shard::RunView>(*std::move(found));
        const std::string queue = known_queue(view->run.task_queue());
        const auto answer = [this, call, view, queue](absl::StatusOr<json::object> about) {
          const auto& run = view->run;
          const bool is_open = run.status() == model::RUNNING;
          json::array findings;
          if (run.durable().is_parked()) {
            findings.emplace_back(
                finding("error", "run_blocked",
                        absl::StrCat("its code cannot replay it; repair it when the code can: ",
                                     run.durable().parked_reason())));
          }
          const bool is_served = any_worker_of(call->ns->name(), queue, run.workflow_type());
          if (is_open && !is_served) {
            findings.emplace_back(finding(
                "warning", "no_active_workers",
                absl::StrCat("no worker of the queue ", queue, " takes ", run.workflow_type())));
          }
          if (is_open && run.has_workflow_task() && run.workflow_task().attempt() > 1) {
            findings.emplace_back(finding(
                "warning", "workflow_task_retries",
                absl::StrCat("its workflow task is at attempt ", run.workflow_task().attempt())));
          }
          for (const auto& activity : view->activities) {
            if (activity.attempt() < 2) continue;
            findings.emplace_back(
                finding("warning", "activity_retries",
                        absl::StrCat("the activity ", activity.scheduled().activity_type(),
                                     " is at attempt ", activity.attempt())));
          }
          const char* state = !is_open ? "closed" : findings.empty() ? "healthy" : "attention";
          call->answer(200, {{"workflow_id", run.workflow_id()},
                             {"run_id", run.run_id()},
                             {"namespace", call->ns->name()},
                             {"generated_at", format_time(now())},
                             {"diagnostic_status", state},
                             {"execution",
                              {{"status", to_json(status_of(run))},
                               {"workflow_type", run.workflow_type()},
                               {"task_queue", queue},
                               {"started_at", format_time(run.start_ns())},
                               {"closed_at", time_or_null(run.close_ns())},
                               {"last_event", {{"sequence", run.next_event_id() - 1}}},
                               {"next_scheduled_event", nullptr},
                               {"open_condition_waits", run.durable().waits_size()},
                               {"waiting_messages", run.durable().messages_size()}}},
                             {"pending_workflow_tasks", workflow_tasks_of(run, now())},
                             {"pending_activities", activities_of(view->activities)},
                             {"task_queue", about.ok() ? json::value(*about) : json::value()},
                             {"recent_failures", json::array{}},
                             {"compatibility", text_or_null(run.version())},
                             {"findings", std::move(findings)}});
        };
        gather_queue(call->ns_num(), call->ns->name(), queue, answer);
      }));
}

}  // namespace fairlead::durable
