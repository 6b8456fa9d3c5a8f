#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/temporal/answers.h"
#include "api/temporal/service.h"
#include "base/assert.h"
#include "base/error.h"
#include "google/protobuf/message_lite.h"
#include "gtest/gtest.h"
#include "shard/engine.h"
#include "shard/namespaces.h"

// The door without a house: an engine that notes what it is asked and answers what it is told to,
// so that a test sees exactly what crosses the seam.
namespace fairlead::api::testing {

inline constexpr TimeNs kNow = 1'700'000'000 * kSecond;
inline constexpr const char* kRunId = "01890a5d-ac96-774b-bcce-b302099a8057";
inline constexpr const char* kOtherRunId = "01890a5d-ac96-774b-bcce-b302099a8058";

// gRPC's numbers.
enum Code {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kAlreadyExists = 6,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
};

class FakeNamespaces final : public shard::NamespaceRegistry {
 public:
  FakeNamespaces() {
    put("default", 7, model::NamespaceRow::REGISTERED);
    put("other", 8, model::NamespaceRow::REGISTERED);
    put("retired", 9, model::NamespaceRow::DEPRECATED);
  }

  void put(std::string name, uint32_t num, model::NamespaceRow::State state) {
    auto row = std::make_shared<model::NamespaceRow>();
    row->set_id("id-of-" + name);
    row->set_name(std::move(name));
    row->set_num(num);
    row->set_state(state);
    row->set_retention_ns(kDay);
    rows.push_back(std::move(row));
  }

  absl::StatusOr<shard::NamespacePtr> find(std::string_view name) const override {
    return first([&](const auto& row) { return row.name() == name; }, name);
  }
  absl::StatusOr<shard::NamespacePtr> find_by_id(std::string_view id) const override {
    return first([&](const auto& row) { return row.id() == id; }, id);
  }
  shard::NamespacePtr find_by_num(uint32_t num) const override {
    const auto found = first([&](const auto& row) { return row.num() == num; }, "");
    return found.ok() ? *found : nullptr;
  }
  std::vector<shard::NamespacePtr> list() const override { return {rows.begin(), rows.end()}; }

  void add(model::NamespaceRow row, Changed reply) override {
    if (find(row.name()).ok()) return reply(errors::namespace_already_exists(row.name()));
    rows.push_back(std::make_shared<model::NamespaceRow>(std::move(row)));
    reply(rows.back());
  }
  void update(std::string name, absl::AnyInvocable<absl::Status(model::NamespaceRow&)> change,
              Changed reply) override {
    for (auto& row : rows) {
      if (row->name() != name) continue;
      const absl::Status status = change(*row);
      return status.ok() ? reply(row) : reply(status);
    }
    reply(errors::namespace_not_found(name));
  }

  void remove(std::string name, Changed reply) override {
    const auto mark = [](model::NamespaceRow& row) {
      row.set_name(row.name() + "-deleted-x");
      row.set_state(model::NamespaceRow::DELETED);
      return absl::OkStatus();
    };
    update(std::move(name), mark, std::move(reply));
  }

  std::vector<std::shared_ptr<model::NamespaceRow>> rows;

 private:
  template <typename Match>
  absl::StatusOr<shard::NamespacePtr> first(Match match, std::string_view name) const {
    for (const auto& row : rows) {
      if (row->state() != model::NamespaceRow::DELETED && match(*row)) return row;
    }
    return errors::namespace_not_found(name);
  }
};

template <typename Result>
Result blank() {
  return Result{};
}
template <>
inline shard::UpdateWithStartResult blank() {
  return {{}, shard::UpdateResult{}};
}

// One kind of question: what was asked, and what is answered.
template <typename Request, typename Result>
struct Seam {
  void ask(Request request, shard::Reply<Result> reply) {
    requests.push_back(std::move(request));
    ++*asked;
    if (holds) {
      held.push_back(std::move(reply));
    } else {
      reply(result);
    }
  }

  int* asked;
  std::vector<Request> requests = {};
  absl::StatusOr<Result> result = blank<Result>();
  bool holds = false;  // keep the reply for the test to give
  std::vector<shard::Reply<Result>> held = {};
};

class FakeEngine final : public shard::Engine {
 public:
  using Done = shard::Done;
  template <typename T>
  using Reply = shard::Reply<T>;

  TimeNs now() override { return kNow; }
  shard::NamespaceRegistry& namespaces() override { return registry; }

  void start_workflow(shard::StartRequest request, Reply<shard::StartResult> reply) override {
    starts.ask(std::move(request), std::move(reply));
  }
  void signal_workflow(shard::SignalRequest request, Reply<shard::Signaled> reply) override {
    signals.ask(std::move(request), std::move(reply));
  }
  void cancel_workflow(shard::CancelRequest request, Reply<Done> reply) override {
    cancels.ask(std::move(request), std::move(reply));
  }
  void terminate_workflow(shard::TerminateRequest request, Reply<Done> reply) override {
    terminates.ask(std::move(request), std::move(reply));
  }
  void reset_workflow(shard::ResetRequest request, Reply<shard::ResetResult> reply) override {
    run_resets.ask(std::move(request), std::move(reply));
  }
  void describe_workflow(shard::RunRef run, Reply<shard::RunView> reply) override {
    describes.ask(std::move(run), std::move(reply));
  }
  void read_history(shard::HistoryRequest request, Reply<shard::HistoryPage> reply) override {
    histories.ask(std::move(request), std::move(reply));
  }
  void read_history_reverse(shard::HistoryRequest request,
                            Reply<shard::HistoryPage> reply) override {
    reverse_histories.ask(std::move(request), std::move(reply));
  }
  shard::PollId poll_workflow_task(shard::PollRequest request,
                                   Reply<shard::WorkflowTask> reply) override {
    workflow_polls.ask(std::move(request), std::move(reply));
    return {ShardId(1), ++polls};
  }
  shard::PollId poll_activity_task(shard::PollRequest request,
                                   Reply<shard::ActivityTask> reply) override {
    activity_polls.ask(std::move(request), std::move(reply));
    return {ShardId(1), ++polls};
  }
  void cancel_poll(shard::PollId poll) override { canceled_polls.push_back(poll.number); }
  void return_workflow_task(shard::TaskToken token) override {
    returned_workflow_tasks.push_back(std::move(token));
  }
  void return_activity_task(shard::TaskToken token) override {
    returned_activity_tasks.push_back(std::move(token));
  }
  void return_query(std::string query_id) override {
    returned_queries.push_back(std::move(query_id));
  }
  void complete_workflow_task(shard::CompleteWorkflowTask request,
                              Reply<shard::CompleteWorkflowTaskResult> reply) override {
    completions.ask(std::move(request), std::move(reply));
  }
  void fail_workflow_task(shard::FailWorkflowTask request, Reply<Done> reply) override {
    failed_tasks.ask(std::move(request), std::move(reply));
  }
  void reset_sticky(shard::RunRef run, Reply<Done> reply) override {
    sticky_resets.ask(std::move(run), std::move(reply));
  }
  void complete_activity(shard::CompleteActivity request, Reply<Done> reply) override {
    completed_activities.ask(std::move(request), std::move(reply));
  }
  void update_with_start(shard::UpdateWithStart request,
                         Reply<shard::UpdateWithStartResult> reply) override {
    starts_with_update.ask(std::move(request), std::move(reply));
  }
  void update_workflow(shard::UpdateRequest request, Reply<shard::UpdateResult> reply) override {
    updates.ask(std::move(request), std::move(reply));
  }
  void fail_activity(shard::FailActivity request, Reply<Done> reply) override {
    failed_activities.ask(std::move(request), std::move(reply));
  }
  void cancel_activity(shard::CancelActivity request, Reply<Done> reply) override {
    canceled_activities.ask(std::move(request), std::move(reply));
  }
  void heartbeat_activity(shard::HeartbeatActivity request,
                          Reply<shard::HeartbeatResult> reply) override {
    heartbeats.ask(std::move(request), std::move(reply));
  }
  void stop_standalone(shard::StopStandalone request, Reply<Done> reply) override {
    stops.ask(std::move(request), std::move(reply));
  }
  void pause_activities(shard::PauseActivities request, Reply<Done> reply) override {
    pauses.ask(std::move(request), std::move(reply));
  }
  void unpause_activities(shard::UnpauseActivities request, Reply<Done> reply) override {
    unpauses.ask(std::move(request), std::move(reply));
  }
  void reset_activities(shard::ResetActivities request, Reply<Done> reply) override {
    resets.ask(std::move(request), std::move(reply));
  }
  void change_activities(shard::ChangeActivities request,
                         Reply<model::ActivityScheduled> reply) override {
    activity_changes.ask(std::move(request), std::move(reply));
  }
  void change_run_options(shard::ChangeRunOptions request, Reply<model::Priority> reply) override {
    option_changes.ask(std::move(request), std::move(reply));
  }
  void delete_workflow(shard::RunRef run, Reply<Done> reply) override {
    deletes.ask(std::move(run), std::move(reply));
  }
  void delete_namespace(std::string name, Reply<shard::NamespacePtr> reply) override {
    registry.remove(std::move(name), std::move(reply));
  }
  void query_workflow(shard::QueryRequest request, Reply<shard::QueryResult> reply) override {
    queries.ask(std::move(request), std::move(reply));
  }
  void answer_query(std::string query_id, shard::QueryAnswer answer, Reply<Done> reply) override {
    answered_queries.ask({std::move(query_id), std::move(answer)}, std::move(reply));
  }
  shard::AdmissionDesk& admission() override {
    FL_ASSERT(false, "no handler asks for permission itself");
    std::abort();
  }
  void describe_admission(shard::AdmissionRequest request,
                          Reply<admission::Payload> reply) override {
    described_admissions.ask(std::move(request), std::move(reply));
  }
  void describe_queue(shard::QueueRef queue, Reply<shard::QueueView> reply) override {
    described_queues.ask(std::move(queue), std::move(reply));
  }
  void change_rules(shard::ChangeRules request, Reply<model::QueueRules> reply) override {
    rule_changes.ask(std::move(request), std::move(reply));
  }
  void list_keys(shard::KeysRequest request, Reply<shard::KeysView> reply) override {
    key_lists.ask(std::move(request), std::move(reply));
  }
  void list_queues(shard::ListQueuesRequest request,
                   Reply<std::vector<shard::QueueSummary>> reply) override {
    queue_lists.ask(std::move(request), std::move(reply));
  }
  void purge_key(shard::PurgeKey request, Reply<shard::Purged> reply) override {
    purges.ask(std::move(request), std::move(reply));
  }
  void explain(shard::ExplainRequest request, Reply<shard::Explanation> reply) override {
    explanations.ask(std::move(request), std::move(reply));
  }
  void shutdown_worker(shard::ShutdownWorkerRequest request, Reply<Done> reply) override {
    shutdowns.ask(std::move(request), std::move(reply));
  }

  int asked = 0;  // questions of any kind
  FakeNamespaces registry;
  Seam<shard::StartRequest, shard::StartResult> starts{&asked};
  Seam<shard::SignalRequest, shard::Signaled> signals{&asked};
  Seam<shard::CancelRequest, Done> cancels{&asked};
  Seam<shard::TerminateRequest, Done> terminates{&asked};
  Seam<shard::ResetRequest, shard::ResetResult> run_resets{&asked};
  Seam<shard::RunRef, shard::RunView> describes{&asked};
  Seam<shard::HistoryRequest, shard::HistoryPage> histories{&asked};
  Seam<shard::HistoryRequest, shard::HistoryPage> reverse_histories{&asked};
  Seam<shard::PollRequest, shard::WorkflowTask> workflow_polls{&asked};
  Seam<shard::PollRequest, shard::ActivityTask> activity_polls{&asked};
  Seam<shard::CompleteWorkflowTask, shard::CompleteWorkflowTaskResult> completions{&asked};
  Seam<shard::FailWorkflowTask, Done> failed_tasks{&asked};
  Seam<shard::RunRef, Done> sticky_resets{&asked};
  Seam<shard::CompleteActivity, Done> completed_activities{&asked};
  Seam<shard::FailActivity, Done> failed_activities{&asked};
  Seam<shard::CancelActivity, Done> canceled_activities{&asked};
  Seam<shard::HeartbeatActivity, shard::HeartbeatResult> heartbeats{&asked};
  Seam<shard::StopStandalone, Done> stops{&asked};
  Seam<shard::PauseActivities, Done> pauses{&asked};
  Seam<shard::UnpauseActivities, Done> unpauses{&asked};
  Seam<shard::ResetActivities, Done> resets{&asked};
  Seam<shard::ChangeActivities, model::ActivityScheduled> activity_changes{&asked};
  Seam<shard::ChangeRunOptions, model::Priority> option_changes{&asked};
  Seam<shard::RunRef, Done> deletes{&asked};
  Seam<shard::QueryRequest, shard::QueryResult> queries{&asked};
  Seam<std::pair<std::string, shard::QueryAnswer>, Done> answered_queries{&asked};
  Seam<shard::UpdateRequest, shard::UpdateResult> updates{&asked};
  Seam<shard::UpdateWithStart, shard::UpdateWithStartResult> starts_with_update{&asked};
  Seam<shard::QueueRef, shard::QueueView> described_queues{&asked};
  Seam<shard::AdmissionRequest, admission::Payload> described_admissions{&asked};
  Seam<shard::ChangeRules, model::QueueRules> rule_changes{&asked};
  Seam<shard::KeysRequest, shard::KeysView> key_lists{&asked};
  Seam<shard::ListQueuesRequest, std::vector<shard::QueueSummary>> queue_lists{&asked};
  Seam<shard::PurgeKey, shard::Purged> purges{&asked};
  Seam<shard::ExplainRequest, shard::Explanation> explanations{&asked};
  Seam<shard::ShutdownWorkerRequest, Done> shutdowns{&asked};
  uint64_t polls = 0;
  std::vector<uint64_t> canceled_polls;
  std::vector<shard::TaskToken> returned_workflow_tasks;
  std::vector<shard::TaskToken> returned_activity_tasks;
  std::vector<std::string> returned_queries;
};

class FakeCall final : public Call {
 public:
  FakeCall(std::string method, std::string body, TimeNs deadline)
      : method_(std::move(method)), body_(std::move(body)), deadline_(deadline) {}

  const std::string& method() const override { return method_; }
  std::string_view body() const override { return body_; }
  TimeNs deadline() const override { return deadline_; }
  std::string_view header(std::string_view) const override { return {}; }
  void release_body() override {
    // Not only emptied but overwritten: whoever still looks there finds rubbish.
    std::fill(body_.begin(), body_.end(), '\xff');
    std::string().swap(body_);
  }
  void on_cancel(absl::AnyInvocable<void()> gone_now) override { gone = std::move(gone_now); }
  void reply(RpcStatus its_status, std::string its_body, Delivered its_delivered) override {
    ++replies;
    status = std::move(its_status);
    answer = std::move(its_body);
    delivered = std::move(its_delivered);
  }

  int replies = 0;
  RpcStatus status;
  std::string answer;
  Delivered delivered;
  absl::AnyInvocable<void()> gone;

 private:
  std::string method_;
  std::string body_;
  TimeNs deadline_;
};

class ServiceTest : public ::testing::Test {
 protected:
  void serve(const ServiceOptions& options) { register_service(methods, engine, options); }
  void serve_with(const ServiceOptions& options) {
    serve(options);
    serving_ = true;
  }

  // Calls "/temporal.api.workflowservice.v1.WorkflowService/<method>", or a full name.
  std::shared_ptr<FakeCall> call_bytes(std::string method, std::string body,
                                       TimeNs deadline = kNow + 70 * kSecond) {
    if (!serving_) serve({});
    serving_ = true;
    if (method.front() != '/') {
      method = "/temporal.api.workflowservice.v1.WorkflowService/" + method;
    }
    auto call = std::make_shared<FakeCall>(method, std::move(body), deadline);
    const Handler* handler = methods.find(method);
    if (handler == nullptr) {
      ADD_FAILURE() << method << " is not registered";
    } else {
      (*handler)(call);
    }
    return call;
  }

  std::shared_ptr<FakeCall> call(std::string method, const google::protobuf::MessageLite& request,
                                 TimeNs deadline = kNow + 70 * kSecond) {
    return call_bytes(std::move(method), request.SerializeAsString(), deadline);
  }

  template <typename Response>
  Response succeed(const std::string& method, const google::protobuf::MessageLite& request) {
    const auto made = call(method, request);
    Response response;
    EXPECT_EQ(made->replies, 1);
    EXPECT_EQ(made->status.code, kOk) << made->status.message;
    EXPECT_TRUE(response.ParseFromString(made->answer));
    return response;
  }

  // A valid request that is spoiled in one place is refused in these words, and the engine never
  // hears of it.
  template <typename Request>
  struct Spoiled {
    std::function<void(Request&)> spoil;
    Code code;
    std::string message;
  };
  template <typename Request>
  void expect_refusals(const std::string& method, const Request& valid,
                       const std::vector<Spoiled<Request>>& cases) {
    const auto fine = call(method, valid);
    EXPECT_EQ(fine->status.code, kOk) << fine->status.message;
    const int asked = engine.asked;
    for (const auto& spoiled : cases) {
      Request request = valid;
      spoiled.spoil(request);
      const auto made = call(method, request);
      EXPECT_EQ(made->replies, 1) << spoiled.message;
      EXPECT_EQ(made->status.code, spoiled.code) << spoiled.message;
      EXPECT_EQ(made->status.message, spoiled.message);
      EXPECT_EQ(engine.asked, asked) << spoiled.message;
    }
  }

  shard::TaskToken token() const {
    shard::TaskToken token;
    token.ns = NamespaceNum(7);
    token.workflow_id = "order-1";
    token.run_id = kRunId;
    token.scheduled_id = 2;
    token.started_id = 3;
    token.attempt = 1;
    return token;
  }

  FakeEngine engine;
  MethodTable methods;
  bool serving_ = false;
};

}  // namespace fairlead::api::testing
