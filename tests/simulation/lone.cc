#include "simulation/lone.h"

#include "absl/strings/str_cat.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

namespace {

constexpr int kForEver = 1'000'000;

template <typename Request, typename Errand>
Request naming(const Errand& errand) {
  Request request;
  request.set_namespace_(kNamespace);
  request.set_activity_id(errand.activity_id);
  request.set_run_id(errand.run_id);
  return request;
}

}  // namespace

LoneClient::LoneClient(const World* world, std::string name)
    : world_(*world), process_(std::make_shared<Process>(Process{std::move(name)})) {}

void LoneClient::start(int count, DurationNs time) {
  for (int i = 0; i < count; ++i) {
    auto errand = std::make_shared<Errand>();
    errand->activity_id = absl::StrCat(process_->name, "-errand-", i);
    world_.later(process_, world_.scheduler->between(0, time),
                 [this, errand] { start_one(errand); });
  }
}

void LoneClient::rush(int count, DurationNs after) {
  for (int i = 0; i < count; ++i) {
    auto errand = std::make_shared<Errand>();
    errand->activity_id = absl::StrCat(process_->name, "-rush-", i);
    errand->is_in_rush = true;
    world_.later(process_, after + world_.scheduler->between(0, 50 * kMillisecond),
                 [this, errand] { start_one(errand); });
  }
}

void LoneClient::start_one(const ErrandPtr& errand) {
  auto& random = world_.random();
  StartActivityExecutionRequest request;
  request.set_namespace_(kNamespace);
  request.set_activity_id(errand->activity_id);
  request.mutable_activity_type()->set_name("errand");
  request.mutable_task_queue()->set_name(kActivityQueue);
  request.set_request_id(absl::StrCat(errand->activity_id, "-start"));
  request.mutable_input()->add_payloads()->set_data(absl::StrCat("input of ", errand->activity_id));
  request.mutable_start_to_close_timeout()->set_seconds(static_cast<int64_t>(1 + random.below(5)));
  request.mutable_retry_policy()->mutable_initial_interval()->set_nanos(100'000'000);
  request.mutable_retry_policy()->set_maximum_attempts(static_cast<int>(random.below(6)));
  if (random.chance(0.5)) request.mutable_heartbeat_timeout()->set_seconds(1);
  if (random.chance(0.2)) {
    request.mutable_schedule_to_close_timeout()->set_seconds(
        static_cast<int64_t>(5 + random.below(30)));
  }
  if (random.chance(0.2)) {
    request.mutable_start_delay()->set_seconds(static_cast<int64_t>(1 + random.below(5)));
  }
  const bool is_in_rush = errand->is_in_rush;
  request.mutable_priority()->set_priority_key(
      static_cast<int>(is_in_rush ? 2 + random.below(2) : random.below(6)));
  if (random.chance(0.7)) {
    const auto key = world_.draw_key();
    request.mutable_priority()->set_fairness_key(key);
    if (world_.is_plain) request.mutable_priority()->set_fairness_weight(world_.draw_weight(key));
  }
  world_.insist<StartActivityExecutionResponse>(
      process_, "StartActivityExecution", request, kForEver,
      [this, errand, request](const Outcome& outcome,
                              const StartActivityExecutionResponse& response) {
        if (!outcome.ok()) {
          return world_.auditor->fail(absl::StrCat("the start of ", errand->activity_id,
                                                   " was refused: ", outcome.message));
        }
        errand->run_id = response.run_id();
        errands_.push_back(errand);
        await_end(errand);
        trouble(errand);
        if (!world_.chance(0.1)) return;
        // A client that did not hear the answer asks again, perhaps much later.
        world_.insist<StartActivityExecutionResponse>(
            process_, "StartActivityExecution", request, kForEver,
            [this, errand](const Outcome& again, const StartActivityExecutionResponse& same) {
              if (!again.ok() || same.run_id() != errand->run_id || same.started()) {
                world_.auditor->fail("a start that is sent again starts " + errand->activity_id);
              }
            });
      });
}

void LoneClient::await_end(const ErrandPtr& errand) {
  world_.insist<PollActivityExecutionResponse>(
      process_, "PollActivityExecution", naming<PollActivityExecutionRequest>(*errand), kForEver,
      [this, errand](const Outcome& outcome, const PollActivityExecutionResponse& response) {
        if (!outcome.ok()) {
          return world_.auditor->fail(
              absl::StrCat(errand->activity_id, " cannot be awaited: ", outcome.message));
        }
        if (!response.has_outcome()) return await_end(errand);
        world_.probes->hit(Probe::kLoneEnded);
        world_.auditor->told_lone_ended(errand->run_id, response.outcome());
      });
}

void LoneClient::read_all() {
  for (const auto& errand : errands_) await_end(errand);
}

void LoneClient::trouble(const ErrandPtr& errand) {
  world_.later(process_, world_.scheduler->between(0, 6 * kSecond), [this, errand] {
    if (is_calm_ || world_.chance(0.3)) return;
    const auto dice = world_.random().below(100);
    if (dice < 60) {
      describe(errand);
    } else if (dice < 85) {
      cancel(errand);
    } else {
      terminate(errand);
    }
    trouble(errand);
  });
}

void LoneClient::describe(const ErrandPtr& errand) {
  auto request = naming<DescribeActivityExecutionRequest>(*errand);
  request.set_include_outcome(true);
  world_.ask<DescribeActivityExecutionResponse>(
      process_, "DescribeActivityExecution", request, 10 * kSecond,
      [this, errand](const Outcome& outcome, const DescribeActivityExecutionResponse& response) {
        if (outcome.is_unknown()) return;
        const bool is_open = response.info().status() == ACTIVITY_EXECUTION_STATUS_RUNNING;
        if (!outcome.ok() || is_open == response.has_outcome()) {
          return world_.auditor->fail(absl::StrCat(errand->activity_id, " is described as ",
                                                   response.ShortDebugString(), outcome.message));
        }
        if (!is_open) world_.auditor->told_lone_ended(errand->run_id, response.outcome());
      });
}

void LoneClient::cancel(const ErrandPtr& errand) {
  auto request = naming<RequestCancelActivityExecutionRequest>(*errand);
  request.set_reason("enough");
  request.set_request_id(absl::StrCat(errand->activity_id, "-cancel"));
  world_.insist<RequestCancelActivityExecutionResponse>(
      process_, "RequestCancelActivityExecution", request, kForEver,
      [this, errand](const Outcome& outcome, const RequestCancelActivityExecutionResponse&) {
        if (!outcome.ok() && outcome.code != kFailedPrecondition) {
          world_.auditor->fail(
              absl::StrCat(errand->activity_id, " cannot be canceled: ", outcome.message));
        }
      });
}

void LoneClient::terminate(const ErrandPtr& errand) {
  auto request = naming<TerminateActivityExecutionRequest>(*errand);
  request.set_reason("enough");
  request.set_request_id(absl::StrCat(errand->activity_id, "-terminate"));
  world_.insist<TerminateActivityExecutionResponse>(
      process_, "TerminateActivityExecution", request, kForEver,
      [this, errand](const Outcome& outcome, const TerminateActivityExecutionResponse&) {
        if (outcome.ok()) return world_.auditor->told_lone_terminated(errand->run_id);
        if (outcome.code != kFailedPrecondition) {
          world_.auditor->fail(
              absl::StrCat(errand->activity_id, " cannot be terminated: ", outcome.message));
        }
      });
}

}  // namespace fairlead::sim
