// Callbacks: whoever was promised to hear how a workflow ended does, and hears the truth.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulation/client.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

namespace {

constexpr int kForEver = 1'000'000;

std::string header(const history::Outgoing& request, std::string_view name) {
  for (const auto& [known, value] : request.headers) {
    if (known == name) return value;
  }
  return "";
}

// The run that the link in a callback is about: …/workflows/<id>/<run>/history?…
std::string run_in_link(const std::string& link) {
  const auto end = link.find("/history?");
  if (end == std::string::npos) return "";
  const auto begin = link.rfind('/', end - 1);
  return link.substr(begin + 1, end - begin - 1);
}

std::string state_of(EventType closing) {
  switch (closing) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
      return "succeeded";
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
      return "canceled";
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      return "failed";
    default:
      return "nothing that ends a chain";
  }
}

}  // namespace

void Auditor::hears_callback(const history::Outgoing& request) {
  const auto token = header(request, "token");
  if (token.empty() || !absl::EndsWith(request.url, token)) {
    return fail("a callback to " + request.url + " has not its headers");
  }
  auto& callback = callbacks_[request.url];
  callback.is_settled = true;
  callback.heard.emplace_back(run_in_link(header(request, "nexus-link")),
                              header(request, "nexus-operation-state"));
}

void Auditor::settle_callbacks() {
  for (const auto& [url, callback] : callbacks_) {
    if (callback.is_promised && !callback.is_settled) {
      fail(absl::StrCat("nobody was told at ", url));
    }
    for (const auto& [run_id, state] : callback.heard) {
      const auto known = runs_.find(run_id);
      // Perhaps nobody else has ever heard of that run.
      if (known == runs_.end() || known->second.history.empty()) continue;
      const auto& events = known->second.history;
      const auto& started = events.front().workflow_execution_started_event_attributes();
      if (!started.continued_execution_run_id().empty()) probes_->hit(Probe::kCallbackInherited);
      if (state_of(events.back().event_type()) != state) {
        fail(absl::StrCat(url, " was told of run ", run_id, ": ", state));
      }
    }
  }
  for (const auto& [request_id, run_id] : attached_) {
    const auto known = runs_.find(run_id);
    if (known == runs_.end() || known->second.history.empty()) continue;
    const auto& events = known->second.history;
    int count = 0;
    for (const auto& event : events) {
      const auto& options = event.workflow_execution_options_updated_event_attributes();
      if (options.attached_request_id() == request_id) ++count;
    }
    if (count != 1) fail(absl::StrCat(request_id, " is ", count, " times in run ", run_id));
  }
}

void Client::add_callback(StartWorkflowExecutionRequest& request) const {
  auto& nexus = *request.add_completion_callbacks()->mutable_nexus();
  nexus.set_url("https://ear/" + request.request_id());
  (*nexus.mutable_header())["Token"] = request.request_id();
}

// A start that finds the workflow running leaves its callback there.
void Client::attach(const FlowPtr& flow) {
  StartWorkflowExecutionRequest request;
  request.set_namespace_(kNamespace);
  request.set_workflow_id(flow->workflow_id);
  request.mutable_workflow_type()->set_name("program");
  request.mutable_task_queue()->set_name(kFlowQueue);
  request.set_request_id(absl::StrCat(flow->workflow_id, "-attach-", ++flow->attached));
  request.set_workflow_id_conflict_policy(WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
  request.set_workflow_id_reuse_policy(WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
  auto& options = *request.mutable_on_conflict_options();
  options.set_attach_request_id(true);
  options.set_attach_completion_callbacks(true);
  add_callback(request);
  world_.insist<StartWorkflowExecutionResponse>(
      process_, "StartWorkflowExecution", request, kForEver,
      [this, request](const Outcome& outcome, const StartWorkflowExecutionResponse& response) {
        if (outcome.code == kAlreadyExists) return;
        if (!outcome.ok() || response.started()) {
          return world_.auditor->fail("an attachment was refused: " + outcome.message);
        }
        world_.probes->hit(Probe::kCallbackAttached);
        world_.auditor->promised_callback(request.completion_callbacks(0).nexus().url());
        world_.auditor->told_attached(request.request_id(), response.run_id());
      });
}

}  // namespace fairlead::sim
