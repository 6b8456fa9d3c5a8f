#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "admission/sessions.h"
#include "api/durable/call.h"
#include "api/durable/contracts.h"
#include "api/durable/door.h"
#include "api/durable/names.h"
#include "api/durable/openapi.h"
#include "base/random.h"
#include "shard/admission_desk.h"

namespace fairlead::durable {

// A worker as it registered. What it said is on disk; when it was last heard of is not.
struct Worker {
  std::string id;
  std::string queue;
  std::string runtime;
  std::string sdk_version;
  std::string build_id;
  json::array workflow_types;  // none: it takes all of them
  json::array activity_types;  // likewise
  json::array capabilities;
  json::object fingerprints;
  json::object validators;  // by workflow type: the updates that its code judges
  json::object contracts;   // by workflow type: what it takes; see contracts.h
  int64_t workflow_slots = 100;
  int64_t activity_slots = 100;
  int64_t session_slots = 0;  // sessions that it may hold at once
  json::value task_slots;
  json::value process_metrics;
  TimeNs registered_ns = 0;
  TimeNs heard_ns = 0;
  // The same for its polls; see `know_types`.
  queue::TypeListPtr workflows_taken;
  queue::TypeListPtr activities_taken;

  void know_types();
  bool takes_workflow(const std::string& type) const {
    return workflow_types.empty() || has_text(workflow_types, type);
  }
  bool judges(const std::string& type, const std::string& update) const;
  bool is_stale(TimeNs now, DurationNs stale_after) const {
    return add_saturated(heard_ns, stale_after) <= now;
  }
};

// A poll and what became of it. Whoever repeats the request gets the same task while its lease is
// alive.
struct PollReceipt {
  std::string worker;
  shard::PollId poll;
  CallPtr call;      // while nothing was found
  std::string task;  // its name, once one was
  std::string body;  // members of the answer
  TimeNs expires = 0;
  TimeNs hold_until = 0;  // while it waits
};

// A task that a worker has, as far as this process knows: receipts and deregistration need it.
struct HandedOut {
  std::string worker;
  std::string receipt;
  shard::TaskToken token;
  bool is_workflow = true;
  std::string workflow_type;
};

// A question to workflow code. In memory only: its caller waits.
struct QueryTask {
  std::string id;
  CallPtr caller;
  NamespaceNum ns;
  std::string queue;
  std::string queue_key;
  std::string workflow_type;
  std::string task;  // members of the task that stay the same
  int attempt = 0;
  std::string owner;
  std::optional<shard::QueryPlace> place;  // while no worker has it
  TimeNs lease_expires = 0;
  TimeNs admitted = 0;
  TimeNs deadline = 0;
  bool was_claimed = false;
};

struct QueryPoll {
  uint64_t number = 0;
  CallPtr call;
  std::string worker;
};

// An update on its way to its run.
struct SentUpdate {
  CallPtr call;
  shard::UpdateRun request;
  std::string input;  // as an envelope; empty: none
  std::string wait_for;
  int64_t wait_seconds = 0;
};

// An update that a worker judges first. In memory only: its caller waits.
struct Validation {
  std::string id;
  std::shared_ptr<SentUpdate> update;
  std::string ns;
  std::string queue;
  std::string workflow_type;
  std::string task;   // members
  std::string owner;  // a worker's id; empty: nobody has it
  std::string owner_key;
  std::string receipt;  // of the poll that took it, if that can be repeated
  TimeNs deadline = 0;
};

// What a worker registers with that can tell its code to stop.
inline constexpr char kCooperates[] = "cooperative_cancellation";
bool cooperates(const Worker& worker);

// Refuses as the command would have been accepted, for the tools that read the block.
void refuse_command(Call& call, const absl::Status& status);

// What this server can do for workers.
json::object server_capabilities(const Options& options);

// Whether a poll for workflow tasks takes such questions as well.
bool takes_validations(const Call& poll);

// What the door remembers and does. Everything runs on one executor.
class Door::Impl : public std::enable_shared_from_this<Door::Impl> {
 public:
  Impl(Options options, Parts parts)
      : options_(std::move(options)),
        engine_(*parts.engine),
        durable_(*parts.durable),
        rows_(*parts.workers),
        runs_(*parts.runs),
        scheduling_(*parts.scheduling),
        schedules_(*parts.schedules),
        executor_(*parts.executor),
        is_serving_(std::move(parts.is_serving)),
        random_(options_.seed) {}

  void load_workers();
  void forget(const Request& request);
  void serve(CallPtr call);
  void close();
  Executor& executor() { return executor_; }

  using Handler = void (Impl::*)(CallPtr);
  struct Route {
    std::string_view method;
    std::string_view path;  // "workflows/{workflow_id}/signal/{signal_name}"
    Plane plane;
    std::string_view roles;  // one letter each: w, o, a
    Handler handler;
    Operation operation;
    RouteDoc doc;
  };
  static const std::vector<Route>& routes();
  static void add_worker_routes(std::vector<Route>* routes);
  static void add_schedule_routes(std::vector<Route>* routes);
  // What the API has and this server has not: it says so instead of pretending.
  static void add_not_built(std::vector<Route>* routes);

 private:
  const Route* find_route(const Call& call, std::vector<std::string>* args, std::string* allowed);
  // False if the call was refused.
  bool check_body(Call& call, const Route* route);
  bool check_credentials(Call& call, const Route* route);
  bool check_version(Call& call);
  bool check_namespace(Call& call);

  // Discovery.
  void health(CallPtr call);
  void ready(CallPtr call);
  void cluster_info(CallPtr call);
  void openapi(CallPtr call);
  void not_built(CallPtr call);

  // Runs, as clients see them.
  void start(CallPtr call);
  void list_workflows(CallPtr call);
  void describe(CallPtr call);
  void debug(CallPtr call);
  void list_runs(CallPtr call);
  void read_history(CallPtr call);
  void export_history(CallPtr call);
  void signal(CallPtr call);
  void update(CallPtr call);
  void cancel(CallPtr call) { stop(std::move(call), model::WORKFLOW_CANCELED); }
  void terminate(CallPtr call) { stop(std::move(call), model::WORKFLOW_TERMINATED); }
  void stop(CallPtr call, model::EventKind kind);
  void repair(CallPtr call);
  void archive(CallPtr call);
  void request_cancellation(CallPtr call);
  void redrive(CallPtr call);
  void append_message(CallPtr call);
  void bridge_event(CallPtr call);
  void query(CallPtr call);

  // Activities without workflow code.
  void start_activity(CallPtr call);
  void list_activities(CallPtr call);
  void describe_activity(CallPtr call);

  // Schedules.
  void list_schedules(CallPtr call);
  void create_schedule(CallPtr call);
  void describe_schedule(CallPtr call);
  void update_schedule(CallPtr call);
  void delete_schedule(CallPtr call);
  void pause_schedule(CallPtr call) { change_pause(std::move(call), true); }
  void resume_schedule(CallPtr call) { change_pause(std::move(call), false); }
  void change_pause(CallPtr call, bool pauses);
  void trigger_schedule(CallPtr call);
  void backfill_schedule(CallPtr call);
  void schedule_history(CallPtr call);
  static shard::ScheduleRef schedule_of(const Call& call);
  shard::Reply<shard::Done> schedule_done(CallPtr call, const char* outcome);

  // Workers.
  void register_worker(CallPtr call);
  void heartbeat_worker(CallPtr call);
  void deregister_worker(CallPtr call);
  void list_workers(CallPtr call);
  void describe_worker(CallPtr call);
  void create_session(CallPtr call);
  void renew_session(CallPtr call);
  void close_session(CallPtr call);
  void poll_workflow_task(CallPtr call) { poll(std::move(call), model::WORKFLOW_TASK); }
  void poll_activity_task(CallPtr call) { poll(std::move(call), model::ACTIVITY_TASK); }
  void poll_query_task(CallPtr call);
  void task_history(CallPtr call);
  void complete_task(CallPtr call);
  void fail_task(CallPtr call);
  void heartbeat_task(CallPtr call);
  void complete_activity(CallPtr call);
  void fail_activity(CallPtr call);
  void heartbeat_activity(CallPtr call);
  void renew_activity(CallPtr call) { observe_activity(std::move(call), true); }
  void activity_status(CallPtr call) { observe_activity(std::move(call), false); }
  void observe_activity(CallPtr call, bool renews);
  void deliver_cancellation(CallPtr call);
  void acknowledge_stop(CallPtr call);
  void complete_query(CallPtr call);
  void fail_query(CallPtr call);
  void query_status(CallPtr call);
  void poll_validation(CallPtr call);
  void approve_validation(CallPtr call);
  void reject_validation(CallPtr call);

  // Task queues.
  void list_queues(CallPtr call);
  void describe_queue(CallPtr call);
  void list_builds(CallPtr call);
  void drain_build(CallPtr call) { change_build(std::move(call), BuildVerb::kDrain); }
  void resume_build(CallPtr call) { change_build(std::move(call), BuildVerb::kResume); }
  void promote_build(CallPtr call) { change_build(std::move(call), BuildVerb::kPromote); }

  // What an operator can have looked after.
  void repair_status(CallPtr call) { look_for_blocked(std::move(call), false); }
  void repair_pass(CallPtr call) { look_for_blocked(std::move(call), true); }
  void look_for_blocked(CallPtr call, bool repairs);
  void retention_status(CallPtr call) { look_for_expired(std::move(call), false); }
  void retention_pass(CallPtr call) { look_for_expired(std::move(call), true); }
  void look_for_expired(CallPtr call, bool prunes);
  void activity_timeout_status(CallPtr call);
  void activity_timeout_pass(CallPtr call);

  // Search attributes.
  void list_attributes(CallPtr call);
  void define_attribute(CallPtr call);
  void remove_attribute(CallPtr call);

  // Namespaces.
  void list_namespaces(CallPtr call);
  void create_namespace(CallPtr call);
  void describe_namespace(CallPtr call);
  void update_namespace(CallPtr call);
  void delete_namespace(CallPtr call);

  // Helpers of the handlers.
  void poll(CallPtr call, model::TaskKind kind);
  void await_task(const std::string& receipt, model::TaskKind kind);
  bool can_stop(const std::string& worker_key) const;
  void pass_on(const std::string& receipt, const shard::WorkflowTask& task);
  void answer_stopped(CallPtr call, shard::TaskToken token, json::object answer);
  const Worker* polling_worker(Call& call);
  static std::string session_worker(Call& call);
  json::object session_record(const Call& call, const admission::Session& session) const;
  void refuse_session(Call& call, const std::string& id, admission::SessionRefusal refusal,
                      json::object extra);
  void answer_session(const CallPtr& call, const std::string& id, const char* outcome);
  void hand_out(const std::string& receipt, const shard::WorkflowTask& task);
  void hand_out(const std::string& receipt, const shard::ActivityTask& task);
  void hand_out(const std::string& receipt, const std::string& task, shard::TaskToken token,
                bool is_workflow, TimeNs expires, std::string body);
  json::object session_of(NamespaceNum ns, const model::ActivityState& activity);
  void end_poll(const std::string& receipt, shard::PollEnd why = shard::PollEnd::kNothing);
  void note_lease(const std::string& task, TimeNs expires);
  void settle_task(const std::string& task);
  void drop_old_receipts();
  void stop_worker(const std::string& key, int64_t* recovered);
  void end_polls(const std::string& worker_key);
  std::optional<shard::TaskToken> leased_token(Call& call, char kind);
  void refuse_task(Call& call, const absl::Status& status);
  struct FoundRuns {
    std::vector<model::RunState> runs;
    bool is_all = true;  // else there may be more
  };
  void find_runs(CallPtr call, std::function<bool(const model::RunState&)> matches, size_t limit,
                 std::function<void(FoundRuns)> then);
  std::optional<shard::ListRuns> read_list(Call& call);
  shard::RunRef run_of(const Call& call, size_t run_arg_count) const;

  // A question to workflow code that gathers what its worker needs.
  struct Asked {
    CallPtr call;
    model::RunState run;
    std::string input;  // of the query, as an envelope; empty: none
    std::string events;
    std::string started;
    int64_t next = 1;
    std::function<void(Asked&)> then;
  };
  void collect_history(std::shared_ptr<Asked> asked);
  void queue_query(Asked& asked);
  void enqueue_query(QueryTask task);
  void await_worker(QueryTask& task);
  void serve_queries(const std::string& queue_key);
  // The first poll of a worker that knows the workflow's type; null: nobody's.
  const QueryPoll* find_poll_for(const QueryTask& task) const;
  void give_query(QueryTask& task, const QueryPoll& poll);
  void end_query(const std::string& id);
  void watch_query(const std::string& id, TimeNs at);
  QueryTask* leased_query(Call& call);
  bool has_query_worker(const std::string& ns, const std::string& queue, const std::string& type);

  void accept_update(std::shared_ptr<SentUpdate> sent);
  void answer_update(const SentUpdate& sent, const absl::StatusOr<shard::UpdateResult>& result);
  void judge_update(std::shared_ptr<SentUpdate> sent);
  void ask_validator(std::shared_ptr<SentUpdate> sent, model::RunState run);
  void enqueue_validation(const SentUpdate& update, const Asked& ready,
                          std::shared_ptr<SentUpdate> sent);
  std::optional<Validation> take_validation(const std::string& id);
  void offer_validation(Validation& task);
  bool serve_validation(const CallPtr& call, const std::string& worker_key, const Worker& worker,
                        const std::string& receipt);
  void give_validation(Validation& task, const CallPtr& call, const std::string& worker_key,
                       const std::string& receipt);
  bool has_validation(Call& call);
  void lose_validations(const std::string& worker_key);
  void close_validations(std::vector<CallPtr>* waiting);
  bool is_judged(const std::string& ns, const std::string& queue, const std::string& type,
                 const std::string& update) const;
  template <typename Visit>
  bool any_worker(const std::string& ns, const std::string& queue, Visit visit) const;
  std::string declared_for(const std::string& ns, const std::string& queue,
                           const std::string& type) const;
  bool any_worker_of(const std::string& ns, const std::string& queue,
                     const std::string& type) const;
  void check_contract(CallPtr call, const shard::RunRef& run, std::string input,
                      std::function<void()> then);
  static void refuse_by_contract(Call& call, const ContractFault& fault);
  void forget_silent_workers();
  void count_slots(NamespaceNum ns, const std::string& ns_name, const Worker& worker);
  int64_t forget_workers(const Call& call);
  void load_builds();
  int64_t forget_builds(const std::string& ns);
  bool is_draining(const std::string& ns, const Worker& worker) const;
  using BuildName = std::tuple<std::string, std::string, std::string>;  // namespace, queue, id
  enum class BuildVerb { kDrain, kResume, kPromote };
  void change_build(CallPtr call, BuildVerb verb);
  void save_build(const BuildName& build, Job done);
  // Whose workers have the runs of a queue that are started now; empty: everyone.
  std::string selected_build(const std::string& ns, const std::string& queue) const;
  json::object build_state(const BuildName& build) const;
  Job once_durable(int status, CallPtr call, json::object answer);
  std::string worker_key(const Call& call, const std::string& id) const;
  struct QueueFigures;  // what its shards tell of a queue
  void gather_queue(NamespaceNum ns, const std::string& ns_name, const std::string& queue,
                    std::function<void(absl::StatusOr<json::object>)> then);
  json::object queue_record(const std::string& ns, const std::string& queue,
                            const QueueFigures& figures);
  json::array current_leases(const std::string& ns, const std::string& queue);
  json::object worker_record(const std::string& ns, const Worker& worker) const;
  TimeNs now() { return engine_.now(); }
  std::string make_id() { return make_uuid(random_, now()); }

  // A reply that comes back to this executor, unless the door is gone by then.
  template <typename T, typename Then>
  shard::Reply<T> here(Then then) {
    return [weak = weak_from_this(), executor = &executor_,
            then = std::move(then)](absl::StatusOr<T> result) mutable {
      executor->post(
          [weak = std::move(weak), then = std::move(then), result = std::move(result)]() mutable {
            if (const auto self = weak.lock()) then(std::move(result));
          });
    };
  }

  const Options options_;
  const json::object capabilities_ = server_capabilities(options_);
  shard::Engine& engine_;
  shard::DurableEngine& durable_;
  shard::WorkerRows& rows_;
  const shard::RunList& runs_;
  shard::ScheduleEngine& scheduling_;
  const shard::ScheduleList& schedules_;
  Executor& executor_;
  const std::function<bool()> is_serving_;
  Random random_;
  bool is_closed_ = false;
  uint64_t last_number_ = 0;
  std::map<std::string, Worker> workers_;  // by namespace and id
  // Builds that get no new tasks, and those that were promoted, and since when.
  std::map<BuildName, TimeNs> drained_;
  std::map<BuildName, TimeNs> promoted_;
  std::map<std::string, PollReceipt> receipts_;
  absl::flat_hash_map<std::string, HandedOut> handed_out_;  // by task name
  std::map<std::string, QueryTask> queries_;
  std::map<std::string, std::deque<std::string>> pending_queries_;  // by queue
  std::map<std::string, std::deque<QueryPoll>> query_polls_;        // by queue
  bool has_contracts_ = false;                                      // or had, since the start
  absl::flat_hash_map<std::string, std::shared_ptr<const json::object>> declared_;  // by run
  bool has_validators_ = false;                                    // or had, since the start
  std::map<std::string, Validation> validations_;                  // by id, oldest first
  std::map<std::string, std::deque<QueryPoll>> validation_polls_;  // by queue
};

template <typename Visit>
bool Door::Impl::any_worker(const std::string& ns, const std::string& queue, Visit visit) const {
  const std::string prefix = absl::StrCat(ns, "\n");
  for (auto at = workers_.lower_bound(prefix); at != workers_.end(); ++at) {
    if (!at->first.starts_with(prefix)) return false;
    if (at->second.queue == queue && visit(at->first, at->second)) return true;
  }
  return false;
}

}  // namespace fairlead::durable
