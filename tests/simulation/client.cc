#include "simulation/client.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

namespace {

constexpr int kForEver = 1'000'000;

// A refusal that says so is a promise too: the run never opens again.
bool says_closed(const Outcome& outcome) {
  return outcome.code == kNotFound &&
         absl::StrContains(outcome.message, "workflow execution already completed");
}

template <typename Request>
void name_run(Request& request, const std::string& workflow_id, const std::string& run_id) {
  request.set_namespace_(kNamespace);
  request.mutable_execution()->set_workflow_id(workflow_id);
  request.mutable_execution()->set_run_id(run_id);
}

template <typename Request>
void name_workflow(Request& request, const std::string& workflow_id, const std::string& run_id) {
  request.set_namespace_(kNamespace);
  request.mutable_workflow_execution()->set_workflow_id(workflow_id);
  request.mutable_workflow_execution()->set_run_id(run_id);
}

}  // namespace

Client::Client(const World* world, std::string name)
    : world_(*world),
      process_(std::make_shared<Process>(Process{std::move(name)})),
      operator_(world, process_->name + "'s operator") {}

void Client::start(int count, DurationNs time) {
  if (!world_.is_plain && world_.chance(0.6)) operator_.set_caps();
  // Many come in bursts: only a crowd makes groups of commits and lines in queues.
  DurationNs burst = 0;
  for (int i = 0; i < count; ++i) {
    auto flow = std::make_shared<Flow>();
    flow->workflow_id = absl::StrCat(process_->name, "-flow-", i);
    if (!world_.chance(0.7)) burst = world_.scheduler->between(0, time);
    const DurationNs delay = burst + world_.scheduler->between(0, 2 * kMillisecond);
    const bool signals = world_.chance(0.2);
    world_.later(process_, delay,
                 [this, flow, signals] { signals ? signal_with_start(flow) : start_run(flow); });
  }
}

// The signal is in the run's history as often as the start is: once.
void Client::signal_with_start(const FlowPtr& flow) {
  SignalWithStartWorkflowExecutionRequest request;
  request.set_namespace_(kNamespace);
  request.set_workflow_id(flow->workflow_id);
  request.mutable_workflow_type()->set_name("program");
  request.mutable_task_queue()->set_name(kFlowQueue);
  request.set_request_id(absl::StrCat(flow->workflow_id, "-signal-start"));
  const std::string input = absl::StrCat(flow->workflow_id, " ", world_.random().next());
  request.mutable_input()->add_payloads()->set_data(input);
  request.set_signal_name("poke");
  request.mutable_signal_input()->add_payloads()->set_data(request.request_id());
  flow->runs = 1;
  world_.insist<SignalWithStartWorkflowExecutionResponse>(
      process_, "SignalWithStartWorkflowExecution", request, kForEver,
      [this, flow, request, input](const Outcome& outcome,
                                   const SignalWithStartWorkflowExecutionResponse& response) {
        if (!outcome.ok()) return world_.auditor->fail("a start was refused: " + outcome.message);
        flow->run_id = response.run_id();
        world_.probes->hit(Probe::kSignalWithStart);
        world_.auditor->told_started(flow->workflow_id, request.request_id(), flow->run_id, input);
        world_.auditor->told_signaled(flow->run_id, request.request_id());
        live(flow);
        await_end(flow, flow->run_id, "");
      });
}

void Client::start_run(const FlowPtr& flow) {
  auto& random = world_.random();
  flow->is_starting = true;
  StartWorkflowExecutionRequest request;
  request.set_namespace_(kNamespace);
  request.set_workflow_id(flow->workflow_id);
  request.mutable_workflow_type()->set_name("program");
  request.mutable_task_queue()->set_name(kFlowQueue);
  request.set_request_id(absl::StrCat(flow->workflow_id, "-start-", ++flow->runs));
  const std::string input = absl::StrCat(flow->workflow_id, " ", random.next());
  request.mutable_input()->add_payloads()->set_data(input);
  request.set_identity(process_->name);
  request.mutable_workflow_task_timeout()->set_seconds(static_cast<int64_t>(1 + random.below(10)));
  if (random.chance(0.15)) {
    request.mutable_workflow_run_timeout()->set_seconds(
        static_cast<int64_t>(5 + random.below(120)));
  }
  if (random.chance(0.1)) {
    request.mutable_workflow_start_delay()->set_seconds(static_cast<int64_t>(1 + random.below(10)));
  }
  request.mutable_priority()->set_priority_key(static_cast<int>(random.below(6)));
  if (random.chance(0.7)) {
    const auto key = world_.draw_key();
    request.mutable_priority()->set_fairness_key(key);
    request.mutable_priority()->set_fairness_weight(world_.draw_weight(key));
  }
  // Some take the first task along, and forget it.
  request.set_request_eager_execution(random.chance(0.05));
  if (random.chance(0.4)) add_callback(request);
  const bool replaces = flow->runs > 1;
  if (replaces) {
    request.set_workflow_id_conflict_policy(WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
  }
  world_.insist<StartWorkflowExecutionResponse>(
      process_, "StartWorkflowExecution", request, kForEver,
      [this, flow, request, input, replaces](const Outcome& outcome,
                                             const StartWorkflowExecutionResponse& response) {
        if (!outcome.ok()) {
          world_.auditor->fail(
              absl::StrCat("the start of ", flow->workflow_id, " was refused: ", outcome.message));
          return;
        }
        world_.auditor->told_started(flow->workflow_id, request.request_id(), response.run_id(),
                                     input);
        for (const auto& callback : request.completion_callbacks()) {
          world_.auditor->promised_callback(callback.nexus().url());
        }
        if (response.has_eager_workflow_task()) world_.probes->hit(Probe::kEagerStart);
        if (replaces) {
          world_.probes->hit(Probe::kRunReplaced);
          world_.auditor->told_closed(flow->run_id);
        }
        flow->run_id = response.run_id();
        flow->is_starting = false;
        live(flow);
        await_end(flow, flow->run_id, "");
        if (!replaces && world_.chance(0.1)) {
          flow->is_repeated = true;
          // A client that did not hear the answer asks again, perhaps much later.
          world_.insist<StartWorkflowExecutionResponse>(
              process_, "StartWorkflowExecution", request, kForEver,
              [this, flow, request, input](const Outcome& again,
                                           const StartWorkflowExecutionResponse& same) {
                if (!again.ok()) return world_.auditor->fail("a repeated start was refused");
                world_.auditor->told_started(flow->workflow_id, request.request_id(), same.run_id(),
                                             input);
              });
        }
      });
}

void Client::live(const FlowPtr& flow) {
  world_.later(process_, world_.scheduler->between(0, 8 * kSecond),
               [this, flow, run_id = flow->run_id] {
                 if (is_calm_ || flow->run_id != run_id) return;
                 poke(flow);
                 live(flow);
               });
}

void Client::poke(const FlowPtr& flow) {
  const auto dice = world_.random().below(100);
  if (dice < 8) return attach(flow);
  if (dice < 25) return signal(flow);
  if (dice < 37) return update(flow);
  if (dice < 45) return operator_.meddle(flow->workflow_id, flow->run_id);
  if (dice < 55) return query(flow);
  if (dice < 65) return describe(flow);
  if (dice < 80) {
    return read_history(flow, flow->run_id, "", std::make_shared<Events>(), world_.chance(0.3));
  }
  if (dice < 88) return read_backwards(flow, flow->run_id, "", std::make_shared<Events>());
  if (dice < 92) return cancel(flow);
  if (dice < 94) return terminate(flow);
  if (flow->is_starting) return;
  if (dice < 96 && flow->runs < 3 && !flow->is_repeated) return start_run(flow);
  if (dice >= 96 && flow->resets < 3) return reset(flow);
}

void Client::signal(const FlowPtr& flow) {
  SignalWorkflowExecutionRequest request;
  name_workflow(request, flow->workflow_id, flow->run_id);
  const std::string name = absl::StrCat(flow->workflow_id, "-signal-", ++flow->signals);
  request.set_signal_name("poke");
  request.set_request_id(name);
  request.mutable_input()->add_payloads()->set_data(name);
  const std::string run_id = flow->run_id;
  world_.auditor->sends_signal(run_id, name);
  const auto heard = [this, run_id, name](const Outcome& outcome,
                                          const SignalWorkflowExecutionResponse&) {
    if (outcome.ok()) world_.auditor->told_signaled(run_id, name);
    if (says_closed(outcome)) world_.auditor->told_closed(run_id);
  };
  world_.insist<SignalWorkflowExecutionResponse>(process_, "SignalWorkflowExecution", request,
                                                 kForEver, heard);
  if (world_.chance(0.2)) {
    world_.probes->hit(Probe::kSignalDeduplicated);
    world_.insist<SignalWorkflowExecutionResponse>(process_, "SignalWorkflowExecution", request,
                                                   kForEver, heard);
  }
}

void Client::update(const FlowPtr& flow) {
  const std::string id = absl::StrCat(flow->workflow_id, "-update-", ++flow->updates);
  world_.auditor->sends_update(flow->run_id, id);
  await_update(flow, flow->run_id, id);
}

// Sends an update, again and again under the same id until its outcome is known.
void Client::await_update(const FlowPtr& flow, const std::string& run_id, const std::string& id) {
  UpdateWorkflowExecutionRequest request;
  name_workflow(request, flow->workflow_id, run_id);
  request.mutable_wait_policy()->set_lifecycle_stage(
      UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED);
  request.mutable_request()->mutable_meta()->set_update_id(id);
  request.mutable_request()->mutable_input()->set_name("poke");
  world_.insist<UpdateWorkflowExecutionResponse>(
      process_, "UpdateWorkflowExecution", request, kForEver,
      [this, flow, run_id, id](const Outcome& outcome,
                               const UpdateWorkflowExecutionResponse& response) {
        if (says_closed(outcome)) world_.auditor->told_closed(run_id);
        if (!outcome.ok()) return;
        using Fate = Auditor::Fate;
        const auto& type = response.outcome().failure().application_failure_info().type();
        if (response.stage() != UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED) {
          if (!is_calm_) await_update(flow, run_id, id);
        } else if (response.outcome().has_success()) {
          if (response.outcome().success().payloads(0).data() != id) {
            world_.auditor->fail(absl::StrCat("update ", id, " got the answer of another one"));
          }
          world_.auditor->told_update(run_id, id, Fate::kCompleted);
        } else if (type == "Rejected") {
          world_.auditor->told_update(run_id, id, Fate::kRejected);
        } else if (type == "AcceptedUpdateCompletedWorkflow") {
          world_.auditor->told_update(run_id, id, Fate::kCutShort);
          world_.auditor->told_closed(run_id);
        } else {
          world_.auditor->fail(absl::StrCat(
              "update ", id, " failed: ", response.outcome().failure().ShortDebugString()));
        }
      });
}

void Client::cancel(const FlowPtr& flow) {
  RequestCancelWorkflowExecutionRequest request;
  name_workflow(request, flow->workflow_id, flow->run_id);
  request.set_reason("enough");
  world_.insist<RequestCancelWorkflowExecutionResponse>(
      process_, "RequestCancelWorkflowExecution", request, kForEver,
      [this, run_id = flow->run_id](const Outcome& outcome,
                                    const RequestCancelWorkflowExecutionResponse&) {
        if (outcome.ok()) world_.auditor->told_canceled(run_id);
      });
}

void Client::terminate(const FlowPtr& flow) {
  TerminateWorkflowExecutionRequest request;
  name_workflow(request, flow->workflow_id, flow->run_id);
  const std::string reason = absl::StrCat("at ", world_.scheduler->now());
  request.set_reason(reason);
  world_.insist<TerminateWorkflowExecutionResponse>(
      process_, "TerminateWorkflowExecution", request, kForEver,
      [this, run_id = flow->run_id, reason](const Outcome& outcome,
                                            const TerminateWorkflowExecutionResponse&) {
        if (outcome.ok()) world_.auditor->told_terminated(run_id, reason);
        if (says_closed(outcome)) world_.auditor->told_closed(run_id);
      });
}

// Chooses one of the run's workflow tasks to begin again from.
void Client::reset(const FlowPtr& flow) {
  GetWorkflowExecutionHistoryRequest request;
  name_run(request, flow->workflow_id, flow->run_id);
  world_.ask<GetWorkflowExecutionHistoryResponse>(
      process_, "GetWorkflowExecutionHistory", request, 10 * kSecond,
      [this, flow, run_id = flow->run_id](const Outcome& outcome,
                                          const GetWorkflowExecutionHistoryResponse& page) {
        if (!outcome.ok() || is_calm_ || flow->is_starting || flow->run_id != run_id) return;
        std::vector<int64_t> places;
        const auto& events = page.history().events();
        for (const auto& event : events) {
          // A child may have outlived the run and ended: nobody tells it to a run that begins
          // again.
          const bool is_closed_run = is_closing(events[events.size() - 1]);
          if (is_closed_run &&
              event.has_start_child_workflow_execution_initiated_event_attributes())
            break;
          if (event.has_workflow_task_completed_event_attributes() ||
              event.has_workflow_task_failed_event_attributes() ||
              event.has_workflow_task_timed_out_event_attributes()) {
            places.push_back(event.event_id());
          }
        }
        if (!places.empty()) reset_to(flow, places[world_.random().below(places.size())]);
      });
}

// The flow goes on with the new run.
void Client::reset_to(const FlowPtr& flow, int64_t event_id) {
  ResetWorkflowExecutionRequest request;
  name_workflow(request, flow->workflow_id, flow->run_id);
  request.set_workflow_task_finish_event_id(event_id);
  request.set_request_id(absl::StrCat(flow->workflow_id, "-reset-", ++flow->resets));
  request.set_reason("once more");
  flow->is_starting = true;
  world_.insist<ResetWorkflowExecutionResponse>(
      process_, "ResetWorkflowExecution", request, kForEver,
      [this, flow](const Outcome& outcome, const ResetWorkflowExecutionResponse& response) {
        if (!outcome.ok()) {
          return world_.auditor->fail(
              absl::StrCat("a reset of ", flow->workflow_id, " was refused: ", outcome.message));
        }
        world_.probes->hit(Probe::kReset);
        world_.auditor->told_reset(flow->run_id, response.run_id());
        flow->run_id = response.run_id();
        flow->is_starting = false;
        live(flow);
        await_end(flow, flow->run_id, "");
      });
}

// A query sees every event that was acknowledged before it was asked.
void Client::query(const FlowPtr& flow) {
  QueryWorkflowRequest request;
  name_run(request, flow->workflow_id, flow->run_id);
  request.mutable_query()->set_query_type("signals");
  const int told = world_.auditor->signals_told(flow->run_id);
  world_.ask<QueryWorkflowResponse>(
      process_, "QueryWorkflow", request, 20 * kSecond,
      [this, told, run_id = flow->run_id](const Outcome& outcome,
                                          const QueryWorkflowResponse& response) {
        if (!outcome.ok()) return;
        int seen = -1;
        if (response.query_result().payloads_size() != 1 ||
            !absl::SimpleAtoi(response.query_result().payloads(0).data(), &seen)) {
          return world_.auditor->fail("a query's answer is not what the worker said");
        }
        if (seen < told) {
          world_.auditor->fail(absl::StrCat("a query of run ", run_id, " saw ", seen,
                                            " signals of ", told, " acknowledged ones"));
        }
      });
}

void Client::describe(const FlowPtr& flow) {
  DescribeWorkflowExecutionRequest request;
  name_run(request, flow->workflow_id, flow->run_id);
  world_.ask<DescribeWorkflowExecutionResponse>(
      process_, "DescribeWorkflowExecution", request, 10 * kSecond,
      [this, flow, run_id = flow->run_id](const Outcome& outcome,
                                          const DescribeWorkflowExecutionResponse& response) {
        if (outcome.is_unknown()) return;
        if (!outcome.ok()) {
          return world_.auditor->fail(
              absl::StrCat("run ", run_id, " of ", flow->workflow_id,
                           " was started and is not there: ", outcome.message));
        }
        if (response.workflow_execution_info().status() != WORKFLOW_EXECUTION_STATUS_RUNNING) {
          world_.auditor->told_closed(run_id);
        }
      });
}

void Client::read_history(const FlowPtr& flow, const std::string& run_id, std::string page_token,
                          std::shared_ptr<Events> events, bool waits) {
  GetWorkflowExecutionHistoryRequest request;
  name_run(request, flow->workflow_id, run_id);
  request.set_maximum_page_size(static_cast<int>(1 + world_.random().below(6)));
  request.set_next_page_token(page_token);
  request.set_wait_new_event(waits);
  world_.ask<GetWorkflowExecutionHistoryResponse>(
      process_, "GetWorkflowExecutionHistory", request, 30 * kSecond,
      [this, flow, run_id, events, waits, page_token, asked = world_.scheduler->now()](
          const Outcome& outcome, const GetWorkflowExecutionHistoryResponse& page) {
        if (outcome.is_unknown()) return;
        if (!outcome.ok()) {
          return world_.auditor->fail(absl::StrCat("run ", run_id, " of ", flow->workflow_id,
                                                   " cannot be read: ", outcome.message));
        }
        const auto& got = page.history().events();
        // Events that were only promised at the end of one page are shown again before what
        // follows.
        while (!got.empty() && !events->empty() && events->back().event_id() >= got[0].event_id()) {
          events->pop_back();
        }
        events->insert(events->end(), got.begin(), got.end());
        if (page.next_page_token().empty())
          return world_.auditor->saw_history(run_id, *events, asked);
        if (waits && !page_token.empty()) world_.probes->hit(Probe::kHistoryAwaited);
        if (is_calm_) return;
        read_history(flow, run_id, page.next_page_token(), events, waits);
      });
}

void Client::read_backwards(const FlowPtr& flow, const std::string& run_id, std::string page_token,
                            std::shared_ptr<Events> events) {
  GetWorkflowExecutionHistoryReverseRequest request;
  name_run(request, flow->workflow_id, run_id);
  request.set_maximum_page_size(static_cast<int>(1 + world_.random().below(6)));
  request.set_next_page_token(page_token);
  world_.ask<GetWorkflowExecutionHistoryReverseResponse>(
      process_, "GetWorkflowExecutionHistoryReverse", request, 30 * kSecond,
      [this, flow, run_id, events](const Outcome& outcome,
                                   const GetWorkflowExecutionHistoryReverseResponse& page) {
        if (!outcome.ok()) return;
        const auto& got = page.history().events();
        events->insert(events->end(), got.begin(), got.end());
        if (!page.next_page_token().empty()) {
          return read_backwards(flow, run_id, page.next_page_token(), events);
        }
        std::reverse(events->begin(), events->end());
        world_.auditor->saw_events(run_id, *events);
      });
}

// How an SDK waits for a result.
void Client::await_end(const FlowPtr& flow, const std::string& run_id, std::string page_token) {
  GetWorkflowExecutionHistoryRequest request;
  name_run(request, flow->workflow_id, run_id);
  request.set_wait_new_event(true);
  request.set_history_event_filter_type(HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT);
  request.set_next_page_token(page_token);
  world_.insist<GetWorkflowExecutionHistoryResponse>(
      process_, "GetWorkflowExecutionHistory", request, kForEver,
      [this, flow, run_id](const Outcome& outcome,
                           const GetWorkflowExecutionHistoryResponse& page) {
        if (!outcome.ok()) {
          return world_.auditor->fail(absl::StrCat("run ", run_id, " of ", flow->workflow_id,
                                                   " cannot be awaited: ", outcome.message));
        }
        if (!page.next_page_token().empty()) {
          return await_end(flow, run_id, page.next_page_token());
        }
        if (page.history().events_size() != 1 || !is_closing(page.history().events(0))) {
          return world_.auditor->fail(absl::StrCat("run ", run_id, " ended without an end"));
        }
        world_.auditor->saw_events(run_id, {page.history().events(0)});
      });
}

}  // namespace fairlead::sim
