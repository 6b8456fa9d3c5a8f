#include "simulation/activity_worker.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/answers.h"

namespace fairlead::sim {

using namespace temporal::api::workflowservice::v1;

namespace {

DurationNs duration_of(const google::protobuf::Duration& duration) {
  return duration.seconds() * kSecond + duration.nanos();
}

// The run that the activity belongs to: its workflow's, or its own if it has none.
const std::string& run_of(const PollActivityTaskQueueResponse& task) {
  return task.activity_run_id().empty() ? task.workflow_execution().run_id()
                                        : task.activity_run_id();
}

TimeNs time_of_stamp(const google::protobuf::Timestamp& stamp) {
  return stamp.seconds() * kSecond + stamp.nanos();
}

}  // namespace

ActivityWorker::ActivityWorker(const World* world, std::string name, int polls)
    : world_(*world),
      name_(std::move(name)),
      polls_(polls),
      process_(std::make_shared<Process>(Process{name_})) {}

void ActivityWorker::start() {
  for (int i = 0; i < polls_; ++i) poll();
}

void ActivityWorker::die() {
  world_.trace->note(absl::StrCat(name_, " dies"));
  world_.wire->hang_up(*process_);
}

void ActivityWorker::poll() {
  PollActivityTaskQueueRequest request;
  request.set_namespace_(kNamespace);
  request.mutable_task_queue()->set_name(kActivityQueue);
  request.set_identity(name_);
  request.set_worker_instance_key(name_);
  world_.ask<Task>(process_, "PollActivityTaskQueue", request, 70 * kSecond,
                   [this](const Outcome& outcome, Task task) {
                     if (outcome.ok() && !task.task_token().empty()) {
                       take(std::move(task));
                       if (process_->is_alive) poll();
                       return;
                     }
                     world_.later(process_,
                                  world_.scheduler->between(kMillisecond, 500 * kMillisecond),
                                  [this] { poll(); });
                   });
}

void ActivityWorker::take(Task task) {
  auto work = std::make_shared<Work>();
  work->task = std::move(task);
  // Clients must not look into a token; an auditor's helper may, to know which activity this is.
  const auto token = api::decode_token(work->task.task_token());
  if (!token.ok()) return world_.auditor->fail("an activity's token cannot be read");
  work->scheduled_id = token->scheduled_id;
  const auto& run_id = run_of(work->task);
  if (work->task.heartbeat_details().payloads_size() > 0 &&
      !absl::SimpleAtoi(work->task.heartbeat_details().payloads(0).data(), &work->heartbeat)) {
    return world_.auditor->fail("an activity's heartbeat details are not what was recorded");
  }
  world_.trace->note(absl::StrCat(name_, " takes ", work->task.activity_id(), "/",
                                  work->task.attempt(), " of ",
                                  work->task.workflow_execution().workflow_id()));
  world_.auditor->given_activity(
      run_id, {work->scheduled_id, work->task.activity_id(), work->task.attempt(),
               time_of_stamp(work->task.started_time()), work->heartbeat,
               !work->task.activity_run_id().empty()});
  world_.auditor->saw_start(work->task.priority().fairness_key(),
                            time_of_stamp(work->task.started_time()));
  if (work->task.input().payloads_size() != 1 ||
      work->task.input().payloads(0).data() !=
          absl::StrCat("input of ", work->task.activity_id())) {
    return world_.auditor->fail("an activity got somebody else's input");
  }
  if (world_.chance(world_.mood.dies_with_task)) return die();
  if (world_.chance(world_.mood.activity_ignored)) return;

  const DurationNs limit = duration_of(work->task.start_to_close_timeout());
  const bool is_late = world_.chance(world_.mood.activity_late);
  const DurationNs usual = world_.chance(0.8) ? limit / 20 : limit / 2;
  work->ends =
      world_.scheduler->now() + (is_late ? limit + world_.scheduler->between(1, kSecond)
                                         : world_.scheduler->between(0, usual + kMillisecond));
  go_on(work);
}

// Works until the next heartbeat is due, or to the end.
void ActivityWorker::go_on(const WorkPtr& work) {
  const TimeNs now = world_.scheduler->now();
  const DurationNs beat = duration_of(work->task.heartbeat_timeout());
  if (beat > 0 && work->ends - now > beat / 2) {
    world_.later(process_, beat / 2, [this, work] { heartbeat(work); });
    return;
  }
  world_.later(process_, std::max<DurationNs>(work->ends - now, 0), [this, work] {
    if (world_.chance(world_.mood.activity_failed)) return fail(work);
    if (world_.chance(0.15)) return complete_by_id(work);
    complete(work);
  });
}

void ActivityWorker::heartbeat(const WorkPtr& work) {
  RecordActivityTaskHeartbeatRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(work->task.task_token());
  request.set_identity(name_);
  const int64_t beat = ++work->heartbeat;
  request.mutable_details()->add_payloads()->set_data(absl::StrCat(beat));
  world_.ask<RecordActivityTaskHeartbeatResponse>(
      process_, "RecordActivityTaskHeartbeat", request, 5 * kSecond,
      [this, work, beat](const Outcome& outcome,
                         const RecordActivityTaskHeartbeatResponse& response) {
        if (outcome.ok()) {
          world_.auditor->told_heartbeat(run_of(work->task), work->scheduled_id,
                                         work->task.attempt(), beat);
        }
        if (outcome.code == kNotFound) return;  // timed out, or the run is over
        if (outcome.ok() && response.cancel_requested() && world_.chance(0.8)) {
          return cancel(work);
        }
        // What SDKs do with an attempt that was paused or set back.
        if (response.activity_paused()) world_.probes->hit(Probe::kPauseHeard);
        if ((response.activity_paused() || response.activity_reset()) && world_.chance(0.5)) {
          return fail(work);
        }
        go_on(work);
      });
}

void ActivityWorker::complete(const WorkPtr& work) {
  RespondActivityTaskCompletedRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(work->task.task_token());
  request.set_identity(name_);
  const std::string result = absl::StrCat(name_, " did it at ", world_.scheduler->now());
  request.mutable_result()->add_payloads()->set_data(result);
  world_.insist<RespondActivityTaskCompletedResponse>(
      process_, "RespondActivityTaskCompleted", request, 5,
      [this, work, result](const Outcome& outcome, const RespondActivityTaskCompletedResponse&) {
        if (outcome.ok()) {
          world_.auditor->told_activity_completed(run_of(work->task), work->scheduled_id, result);
        } else if (outcome.code == kNotFound) {
          world_.probes->hit(Probe::kStaleActivityToken);
        } else if (!outcome.is_unknown()) {
          world_.auditor->fail("an activity's result was refused: " + outcome.message);
        }
      });
}

void ActivityWorker::complete_by_id(const WorkPtr& work) {
  RespondActivityTaskCompletedByIdRequest request;
  request.set_namespace_(kNamespace);
  request.set_workflow_id(work->task.workflow_execution().workflow_id());
  request.set_run_id(run_of(work->task));
  request.set_activity_id(work->task.activity_id());
  request.set_identity(name_);
  const std::string result = absl::StrCat(name_, " did it by id at ", world_.scheduler->now());
  request.mutable_result()->add_payloads()->set_data(result);
  world_.insist<RespondActivityTaskCompletedByIdResponse>(
      process_, "RespondActivityTaskCompletedById", request, 5,
      [this, work, result](const Outcome& outcome,
                           const RespondActivityTaskCompletedByIdResponse&) {
        if (!outcome.ok()) return;
        world_.probes->hit(Probe::kActivityCompletedById);
        world_.auditor->told_activity_completed(run_of(work->task), work->scheduled_id, result);
      });
}

void ActivityWorker::fail(const WorkPtr& work) {
  RespondActivityTaskFailedRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(work->task.task_token());
  request.set_identity(name_);
  request.mutable_failure()->set_message("the activity stumbled");
  auto* info = request.mutable_failure()->mutable_application_failure_info();
  info->set_type("Stumble");
  info->set_non_retryable(world_.chance(0.2));
  world_.insist<RespondActivityTaskFailedResponse>(
      process_, "RespondActivityTaskFailed", request, 5,
      [](const Outcome&, const RespondActivityTaskFailedResponse&) {});
}

void ActivityWorker::cancel(const WorkPtr& work) {
  RespondActivityTaskCanceledRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(work->task.task_token());
  request.set_identity(name_);
  world_.insist<RespondActivityTaskCanceledResponse>(
      process_, "RespondActivityTaskCanceled", request, 5,
      [this, work](const Outcome& outcome, const RespondActivityTaskCanceledResponse&) {
        if (!outcome.ok()) return;
        world_.auditor->told_activity_canceled(run_of(work->task), work->scheduled_id);
      });
}

}  // namespace fairlead::sim
