#include "simulation/operator.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "api/fairlead/task_queue.pb.h"

namespace fairlead::sim {

using namespace temporal::api::workflowservice::v1;

namespace {

constexpr int kForEver = 1'000'000;

template <typename Request>
Request about(const std::pair<std::string, std::string>& run) {
  Request request;
  request.set_namespace_(kNamespace);
  request.mutable_execution()->set_workflow_id(run.first);
  request.mutable_execution()->set_run_id(run.second);
  return request;
}

template <typename Request>
Request about(const std::pair<std::string, std::string>& run, const std::string& activity_id) {
  auto request = about<Request>(run);
  request.set_id(activity_id);
  return request;
}

}  // namespace

Operator::Operator(const World* world, std::string name)
    : world_(*world), process_(std::make_shared<Process>(Process{std::move(name)})) {}

void Operator::meddle(const std::string& workflow_id, const std::string& run_id) {
  const RunName run{workflow_id, run_id};
  if (world_.chance(0.2)) return give_priority(run);
  choose_activity(run, 8);
}

// The run may have closed meanwhile, and the activity may have ended: such refusals are no news.
void Operator::give_priority(const RunName& run) {
  UpdateWorkflowExecutionOptionsRequest request;
  request.set_namespace_(kNamespace);
  request.mutable_workflow_execution()->set_workflow_id(run.first);
  request.mutable_workflow_execution()->set_run_id(run.second);
  request.mutable_update_mask()->add_paths("priority.priority_key");
  request.mutable_workflow_execution_options()->mutable_priority()->set_priority_key(
      static_cast<int>(1 + world_.random().below(5)));
  world_.ask<UpdateWorkflowExecutionOptionsResponse>(
      process_, "UpdateWorkflowExecutionOptions", request, 10 * kSecond,
      [this](const Outcome& outcome, const UpdateWorkflowExecutionOptionsResponse&) {
        if (outcome.ok()) world_.probes->hit(Probe::kPriorityChanged);
      });
}

// Looks again and again, for a while, until something is pending.
void Operator::choose_activity(const RunName& run, int patience) {
  world_.ask<DescribeWorkflowExecutionResponse>(
      process_, "DescribeWorkflowExecution", about<DescribeWorkflowExecutionRequest>(run),
      10 * kSecond,
      [this, run, patience](const Outcome& outcome,
                            const DescribeWorkflowExecutionResponse& response) {
        const auto& pending = response.pending_activities();
        if (!outcome.ok() || is_calm_) return;
        if (pending.empty()) {
          if (patience > 0) {
            world_.later(process_, world_.scheduler->between(0, kSecond),
                         [this, run, patience] { choose_activity(run, patience - 1); });
          }
          return;
        }
        const auto choice = world_.random().below(static_cast<uint64_t>(pending.size()));
        const auto& id = pending.Get(static_cast<int>(choice)).activity_id();
        // Once for each: a message that comes late must not undo what a later one has done.
        if (!activities_.insert({run.second, id}).second) return;
        runs_.insert(run);
        world_.chance(0.3) ? change_options(run, id) : pause(run, id);
      });
}

void Operator::pause(const RunName& run, const std::string& activity_id) {
  auto request = about<PauseActivityRequest>(run, activity_id);
  request.set_request_id(absl::StrCat("pause ", activity_id));
  world_.insist<PauseActivityResponse>(
      process_, "PauseActivity", request, kForEver,
      [this, run, activity_id](const Outcome& outcome, const PauseActivityResponse&) {
        if (!outcome.ok()) return;
        world_.probes->hit(Probe::kActivityPaused);
        // In the calm everything was let go, perhaps before this answer arrived.
        if (!is_calm_) world_.auditor->told_paused(run.second, activity_id);
        world_.later(process_, world_.scheduler->between(0, 20 * kSecond),
                     [this, run, activity_id] { let_go(run, activity_id); });
      });
}

void Operator::let_go(const RunName& run, const std::string& activity_id) {
  auto& random = world_.random();
  const bool resets = random.chance(0.5);
  world_.auditor->lets_go(run.second, activity_id, resets);
  google::protobuf::Duration jitter;
  if (random.chance(0.5)) jitter.set_seconds(static_cast<int64_t>(1 + random.below(5)));
  if (resets) {
    auto request = about<ResetActivityRequest>(run, activity_id);
    *request.mutable_jitter() = jitter;
    request.set_reset_heartbeat(random.chance(0.3));
    request.set_restore_original_options(random.chance(0.3));
    world_.insist<ResetActivityResponse>(
        process_, "ResetActivity", request, kForEver,
        [this](const Outcome& outcome, const ResetActivityResponse&) {
          if (outcome.ok()) world_.probes->hit(Probe::kActivityReset);
        });
  } else {
    auto request = about<UnpauseActivityRequest>(run, activity_id);
    *request.mutable_jitter() = jitter;
    world_.insist<UnpauseActivityResponse>(
        process_, "UnpauseActivity", request, kForEver,
        [this](const Outcome& outcome, const UnpauseActivityResponse&) {
          if (outcome.ok()) world_.probes->hit(Probe::kActivityUnpaused);
        });
  }
}

void Operator::change_options(const RunName& run, const std::string& activity_id) {
  auto& random = world_.random();
  auto request = about<UpdateActivityOptionsRequest>(run, activity_id);
  auto& options = *request.mutable_activity_options();
  options.mutable_priority()->set_priority_key(static_cast<int>(1 + random.below(5)));
  options.mutable_retry_policy()->mutable_initial_interval()->set_seconds(
      static_cast<int64_t>(1 + random.below(3)));
  options.mutable_retry_policy()->mutable_maximum_interval()->set_seconds(10);
  request.mutable_update_mask()->add_paths("priority.priority_key");
  if (random.chance(0.5)) {
    request.mutable_update_mask()->add_paths("retry_policy.initial_interval");
    request.mutable_update_mask()->add_paths("retry_policy.maximum_interval");
  }
  world_.ask<UpdateActivityOptionsResponse>(
      process_, "UpdateActivityOptions", request, 10 * kSecond,
      [this](const Outcome& outcome, const UpdateActivityOptionsResponse& response) {
        if (!outcome.ok()) return;
        world_.probes->hit(Probe::kOptionsChanged);
        if (response.activity_options().priority().priority_key() == 0) {
          world_.auditor->fail("an activity's options were changed and are not");
        }
      });
}

void Operator::set_caps() {
  if (is_calm_) return;
  auto& random = world_.random();
  const bool is_activity = random.chance(0.5);
  v1::TaskQueue queue;
  queue.set_namespace_(kNamespace);
  queue.set_name(is_activity ? kActivityQueue : kFlowQueue);
  queue.set_type(is_activity ? v1::TASK_QUEUE_TYPE_ACTIVITY : v1::TASK_QUEUE_TYPE_WORKFLOW);
  const auto then = [this](const Outcome& outcome, const auto&) {
    if (!outcome.ok() && !outcome.is_unknown()) {
      world_.auditor->fail("a cap is refused: " + outcome.message);
    }
  };
  if (random.chance(0.3)) {
    v1::SetKeyRequest request;
    *request.mutable_task_queue() = queue;
    request.set_key(std::string(1, static_cast<char>('a' + random.below(4))));
    request.set_running_max(static_cast<uint32_t>(1 + random.below(2)));
    world_.ask<v1::SetKeyResponse>(process_, "/fairlead.v1.TaskQueueService/SetKey", request,
                                   10 * kSecond, then);
  } else {
    v1::SetTaskQueueRequest request;
    *request.mutable_task_queue() = queue;
    if (random.chance(0.5)) {
      request.set_running_max(static_cast<uint32_t>(1 + random.below(4)));
    } else if (random.chance(0.8)) {
      request.set_running_max_per_key(static_cast<uint32_t>(1 + random.below(2)));
    } else {
      request.set_unset_running_max(true);
    }
    world_.ask<v1::SetTaskQueueResponse>(process_, "/fairlead.v1.TaskQueueService/SetTaskQueue",
                                         request, 10 * kSecond, then);
  }
  // Rather seldom: only what has been in force for a while binds everyone.
  world_.later(process_, world_.scheduler->between(kSecond, 40 * kSecond), [this] { set_caps(); });
}

void Operator::calm_down() {
  is_calm_ = true;
  for (const auto& [run_id, activity_id] : activities_) {
    world_.auditor->lets_go(run_id, activity_id, false);
  }
  const auto release = [this] {
    for (const auto& run : runs_) {
      auto request = about<UnpauseActivityRequest>(run);
      request.set_unpause_all(true);
      world_.insist<UnpauseActivityResponse>(process_, "UnpauseActivity", request, kForEver,
                                             [](const Outcome&, const UnpauseActivityResponse&) {});
    }
  };
  release();
  // A pause may still be on its way.
  world_.later(process_, 5 * kMinute, release);
}

}  // namespace fairlead::sim
