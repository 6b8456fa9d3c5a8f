// What a run takes, as it was declared when it started.

#include "absl/strings/str_cat.h"
#include "api/durable/codec.h"
#include "api/durable/contracts.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

constexpr size_t kRememberedMax = 10'000;

}  // namespace

// Of the newest worker that is there, members of a start's event; empty: nobody has declared any.
std::string Door::Impl::declared_for(const std::string& ns, const std::string& queue,
                                     const std::string& type) const {
  const Worker* newest = nullptr;
  any_worker(ns, queue, [&](const std::string&, const Worker& worker) {
    if (!worker.contracts.contains(type)) return false;
    if (worker.is_stale(engine_.now(), options_.stale_after())) return false;
    if (newest == nullptr || worker.registered_ns >= newest->registered_ns) newest = &worker;
    return false;
  });
  if (newest == nullptr) return "";
  return declared_members(newest->contracts.at(type).as_object());
}

// Whether a worker is there that would take a workflow of the type.
bool Door::Impl::any_worker_of(const std::string& ns, const std::string& queue,
                               const std::string& type) const {
  return any_worker(ns, queue, [&](const std::string&, const Worker& worker) {
    return !worker.is_stale(engine_.now(), options_.stale_after()) && !is_draining(ns, worker) &&
           worker.takes_workflow(type);
  });
}

void Door::Impl::refuse_by_contract(Call& call, const ContractFault& fault) {
  json::object extra{{"workflow_id", call.arg(0)}};
  if (fault.status == 422) {
    const json::object errors{{"input", json::array{fault.text}}};
    extra["errors"] = errors;
    extra["validation_errors"] = errors;
  }
  if (call.operation.name == "query") {
    extra["query_name"] = call.args.back();
    extra["result"] = nullptr;
    extra["result_envelope"] = nullptr;
  }
  call.refuse(fault.status, fault.reason, fault.text, std::move(extra));
}

// Goes on if the run takes what the call wants to tell it. What is wrong with the run itself is
// said by who goes on.
void Door::Impl::check_contract(CallPtr call, const shard::RunRef& run, std::string input,
                                std::function<void()> then) {
  const auto judge = [call, input = std::move(input),
                      then = std::move(then)](const json::object& started) {
    const auto fault = contract_fault(started, call->operation.name, call->args.back(), input);
    if (fault.has_value()) return refuse_by_contract(*call, *fault);
    then();
  };
  if (!has_contracts_) return judge({});
  const auto known = declared_.find(run.run_id);
  if (known != declared_.end()) return judge(*known->second);
  shard::HistoryRequest first;
  first.run = run;
  first.max_batches = 1;
  engine_.read_history(
      std::move(first),
      here<shard::HistoryPage>([this, run, judge](absl::StatusOr<shard::HistoryPage> page) {
        if (!page.ok()) return judge({});
        auto started = object_of(started_payload(page->history));
        started.erase("input");
        if (run.run_id.empty()) return judge(started);
        if (declared_.size() >= kRememberedMax) declared_.clear();
        const auto kept = std::make_shared<const json::object>(std::move(started));
        declared_[run.run_id] = kept;
        judge(*kept);
      }));
}

}  // namespace fairlead::durable
