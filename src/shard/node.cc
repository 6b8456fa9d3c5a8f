#include "shard/node.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <mutex>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// DO NOT CHANGE: where a row lies depends on it.
uint64_t hash_of(NamespaceNum ns, char what, std::string_view name) {
  std::string bytes(1, what);
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(ns.value() >> shift));
  }
  return stable_hash(name, stable_hash(bytes));
}

// The longest a worker may keep a workflow task, whatever the limits were when it was given.
constexpr DurationNs kWorkflowTaskMax = 3600 * kSecond;
constexpr size_t kRunBytes = 16;

}  // namespace

Node::Node(NodeOptions options, Parts parts, Random random)
    : options_(options),
      parts_(std::move(parts)),
      namespaces_(parts_.store, parts_.commits, parts_.executors[0], parts_.clock,
                  Random(random.next())) {
  FL_ASSERT(options_.shards > 0, "a store has at least one shard");
  const auto owner_of = [this](const QueueName& queue) {
    return shard_of_queue(queue.ns, static_cast<model::TaskKind>(queue.type), queue.name);
  };
  desk_ = std::make_shared<AdmissionDesk>(
      options_.policies,
      AdmissionDesk::Env{
          .clock = parts_.clock,
          .namespace_name =
              [this](NamespaceNum ns) {
                const auto row = namespaces_.find_by_num(ns.value());
                return row == nullptr ? "" : row->name();
              },
          .owner_of = owner_of,
          .look_again =
              [this, owner_of](const QueueName& queue) {
                auto& owner = shard(owner_of(queue));
                owner.executor().post([&owner, queue] { owner.look_again(queue); });
              },
      });
  sessions_ = std::make_shared<SessionDesk>(SessionDesk::Env{
      .clock = parts_.clock,
      .commits = parts_.commits,
      .look_again =
          [this, owner_of](const QueueName& queue) {
            auto& owner = shard(owner_of(queue));
            owner.executor().post([&owner, queue] { owner.look_again(queue); });
          },
  });
  for (uint16_t i = 0; i < options_.shards; ++i) {
    World world;
    world.store = parts_.store;
    world.commits = parts_.commits;
    world.clock = parts_.clock;
    world.codec = parts_.codec;
    world.durable_codec = parts_.durable_codec;
    world.limits = &options_.limits;
    world.namespaces = &namespaces_;
    world.peers = this;
    world.cache_bytes = options_.cache_bytes / options_.shards;
    world.queue_settings = options_.queue_settings;
    world.queue_exceptions = options_.queue_exceptions;
    world.desk = desk_.get();
    world.sessions = sessions_.get();
    world.caller = parts_.caller;
    world.observer = parts_.observer;
    shards_.push_back(std::make_unique<Shard>(
        ShardId(i), parts_.executors[i % parts_.executors.size()], world, Random(random.next())));
  }
}

// What the shards leave behind may hold permits, which are given back.
Node::~Node() {
  desk_->detach();
  sessions_->detach();
}

absl::Status Node::open() {
  if (const auto status = namespaces_.load(); !status.ok()) return status;
  if (const auto status = sessions_->load(*parts_.store); !status.ok()) return status;
  if (const auto status = restore_admission(); !status.ok()) return status;
  for (auto& shard : shards_) {
    shard->executor().post([&shard = *shard] { shard.open(); });
  }
  for (const auto& row : namespaces_.list()) {
    const bool is_deleted = row->state() == model::NamespaceRow::DELETED;
    if (is_deleted && !row->is_purged()) purge(NamespaceNum(row->num()));
  }
  return absl::OkStatus();
}

absl::Status Node::restore_admission() {
  store::WriteBatch expired;
  for (uint16_t i = 0; i < options_.shards; ++i) {
    const ShardId id(i);
    const auto scan = [&](const store::keys::Range& range, const store::Store::Visit& visit) {
      return parts_.store->scan(range.begin, range.end, visit);
    };
    std::vector<QueueName> leasing;
    auto status = scan(store::keys::leases(id), [&](std::string_view key, std::string_view value) {
      const auto queue = store::keys::parse_lease(key).queue;
      desk_->restore_lease(queue);
      model::LeaseRow row;
      FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
                "a lease's row is one");
      if (!row.session_id().empty()) sessions_->restore_running(queue.ns, row.session_id());
      if (leasing.empty() || !(leasing.back() == queue)) leasing.push_back(queue);
      return true;
    });
    if (!status.ok()) return status;
    // Before the first of these tasks can end, its queue has read and counted them all: one that
    // is read between the row's end and the message about it would count that end twice. Here and
    // now, while nothing else goes on: the executor of the task's run may be faster than that of
    // the queue.
    for (const auto& queue : leasing) shards_[i]->queues().open({queue, queue.name});
    status = scan(store::keys::dispatches(id), [&](std::string_view key, std::string_view value) {
      const auto place = store::keys::parse_dispatch(key);
      model::DispatchRow row;
      FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
                "a dispatch's row is one");
      if (!desk_->restore_dispatch(place.queue, place.slot, row)) expired.erase(std::string(key));
      return true;
    });
    if (!status.ok()) return status;
    // A run whose workflow task a worker has wakes up, at the latest, when the task's time is over.
    auto soon = store::keys::wakeups(id);
    soon.end = store::keys::wakeup(id, add_saturated(now(), kWorkflowTaskMax),
                                   std::string(kRunBytes, '\xff'));
    std::vector<std::string> runs;
    status = scan(soon, [&](std::string_view key, std::string_view) {
      runs.push_back(store::keys::parse_wakeup(key).run);
      return true;
    });
    if (!status.ok()) return status;
    for (const auto& run : runs) {
      const auto row = parts_.store->get(store::keys::run(id, run));
      if (!row.ok()) return row.status();
      model::RunState state;
      if (!row->has_value() || !state.ParseFromString(**row)) continue;
      if (state.status() != model::RUNNING || state.workflow_task().started_id() == 0) continue;
      const QueueName queue{NamespaceNum(state.namespace_num()), model::WORKFLOW_TASK,
                            state.task_queue()};
      desk_->restore_lease(queue);
      // A run's row says that its task is out; no row of the queue does. The queue is told once,
      // and keeps count from there.
      const ShardId owner = shard_of_queue(queue.ns, model::WORKFLOW_TASK, queue.name);
      shards_[owner.value()]->queues().occupy({queue, queue.name},
                                              state.workflow_task().lease_key());
    }
  }
  desk_->restored();
  if (!expired.empty()) parts_.commits->write(expired);
  return absl::OkStatus();
}

void Node::set_queue_settings(const queue::Settings& settings,
                              const std::vector<queue::Exception>& exceptions) {
  for (auto& shard : shards_) {
    shard->executor().post([&shard = *shard, settings, exceptions] {
      shard.set_queue_settings(settings, exceptions);
    });
  }
}

void Node::close(std::function<void()> done) {
  desk_->detach();
  sessions_->detach();
  auto left = std::make_shared<std::atomic<size_t>>(shards_.size());
  for (auto& shard : shards_) {
    shard->executor().post([&shard = *shard, left, done] {
      shard.close();
      if (--*left == 0) done();
    });
  }
}

ShardId Node::shard_of_queue(NamespaceNum ns, model::TaskKind kind,
                             const std::string& normal_name) const {
  const char what = kind == model::WORKFLOW_TASK ? 'w' : 'a';
  return ShardId(static_cast<uint16_t>(hash_of(ns, what, normal_name) % options_.shards));
}

ShardId Node::shard_of_workflow(NamespaceNum ns, const std::string& workflow_id) const {
  return ShardId(static_cast<uint16_t>(hash_of(ns, 'r', workflow_id) % options_.shards));
}

ShardId Node::shard_of_schedule(NamespaceNum ns, const std::string& schedule_id) const {
  return ShardId(static_cast<uint16_t>(hash_of(ns, 's', schedule_id) % options_.shards));
}

Shard& Node::shard_of_run(NamespaceNum ns, const std::string& workflow_id) {
  return *shards_[shard_of_workflow(ns, workflow_id).value()];
}

template <typename Result>
std::optional<Reply<Result>> Node::counted(Reply<Result> reply) {
  if (++requests_ > options_.requests_max) {
    --requests_;
    reply(errors::system_overloaded());
    return std::nullopt;
  }
  return [this, reply = std::move(reply)](absl::StatusOr<Result> result) mutable {
    --requests_;
    reply(std::move(result));
  };
}

template <typename Request, typename Result>
void Node::send(Shard& shard, void (Shard::*method)(Request, Reply<Result>), Request request,
                Reply<Result> reply) {
  auto answer = counted(std::move(reply));
  if (!answer.has_value()) return;
  shard.executor().post(
      [&shard, method, request = std::move(request), answer = *std::move(answer)]() mutable {
        (shard.*method)(std::move(request), std::move(answer));
      });
}

void Node::start_workflow(StartRequest request, Reply<StartResult> reply) {
  auto& shard = shard_of_run(request.ns, request.workflow_id);
  send(shard, &Shard::start_workflow, std::move(request), std::move(reply));
}

void Node::signal_workflow(SignalRequest request, Reply<Signaled> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::signal_workflow, std::move(request), std::move(reply));
}

void Node::cancel_workflow(CancelRequest request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::cancel_workflow, std::move(request), std::move(reply));
}

void Node::terminate_workflow(TerminateRequest request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::terminate_workflow, std::move(request), std::move(reply));
}

void Node::reset_workflow(ResetRequest request, Reply<ResetResult> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::reset_workflow, std::move(request), std::move(reply));
}

void Node::describe_workflow(RunRef run, Reply<RunView> reply) {
  auto& shard = shard_of_run(run.ns, run.workflow_id);
  send(shard, &Shard::describe_workflow, std::move(run), std::move(reply));
}

void Node::change_run_options(ChangeRunOptions request, Reply<model::Priority> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::change_run_options, std::move(request), std::move(reply));
}

void Node::delete_workflow(RunRef run, Reply<Done> reply) {
  auto& shard = shard_of_run(run.ns, run.workflow_id);
  send(shard, &Shard::delete_workflow, std::move(run), std::move(reply));
}

void Node::delete_namespace(std::string name, Reply<NamespacePtr> reply) {
  namespaces_.remove(std::move(name), [this, reply = std::move(reply)](auto deleted) mutable {
    if (deleted.ok()) purge(NamespaceNum((*deleted)->num()));
    reply(std::move(deleted));
  });
}

void Node::purge(NamespaceNum ns) {
  const auto left = std::make_shared<std::atomic<size_t>>(shards_.size());
  for (auto& shard : shards_) {
    shard->executor().post([this, &shard = *shard, ns, left] {
      shard.purge_namespace(ns, [this, ns, left] {
        if (--*left == 0) namespaces_.set_purged(ns.value());
      });
    });
  }
}

void Node::read_history(HistoryRequest request, Reply<HistoryPage> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::read_history, std::move(request), std::move(reply));
}

void Node::read_history_reverse(HistoryRequest request, Reply<HistoryPage> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::read_history_reverse, std::move(request), std::move(reply));
}

template <typename Result>
PollId Node::send_poll(PollRequest request, Reply<Result> reply) {
  const auto& normal = request.queue.sticky() ? request.queue.normal_name() : request.queue.name();
  const PollId id{shard_of_queue(request.ns, request.kind, normal), ++last_poll_};
  desk_->seen({request.ns, static_cast<uint8_t>(request.kind), normal}, request.identity);
  auto& shard = *shards_[id.shard.value()];
  auto poll = std::make_unique<Poll>();
  poll->number = id.number;
  poll->request = std::move(request);
  poll->reply = std::move(reply);
  shard.executor().post(
      [&shard, poll = std::move(poll)]() mutable { shard.poll(std::move(poll)); });
  return id;
}

PollId Node::poll_workflow_task(PollRequest request, Reply<WorkflowTask> reply) {
  request.kind = model::WORKFLOW_TASK;
  return send_poll(std::move(request), std::move(reply));
}

PollId Node::poll_activity_task(PollRequest request, Reply<ActivityTask> reply) {
  request.kind = model::ACTIVITY_TASK;
  return send_poll(std::move(request), std::move(reply));
}

void Node::cancel_poll(PollId poll) {
  auto& shard = *shards_[poll.shard.value()];
  shard.executor().post([&shard, number = poll.number] { shard.cancel_poll(number); });
}

void Node::return_workflow_task(TaskToken token) {
  auto& shard = shard_of_run(token.ns, token.workflow_id);
  shard.executor().post([&shard, token = std::move(token)]() mutable {
    shard.return_workflow_task(std::move(token));
  });
}

void Node::return_activity_task(TaskToken token) {
  auto& shard = shard_of_run(token.ns, token.workflow_id);
  shard.executor().post([&shard, token = std::move(token)]() mutable {
    shard.return_activity_task(std::move(token));
  });
}

void Node::complete_workflow_task(CompleteWorkflowTask request,
                                  Reply<CompleteWorkflowTaskResult> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::complete_workflow_task, std::move(request), std::move(reply));
}

void Node::fail_workflow_task(FailWorkflowTask request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::fail_workflow_task, std::move(request), std::move(reply));
}

void Node::reset_sticky(RunRef run, Reply<Done> reply) {
  auto& shard = shard_of_run(run.ns, run.workflow_id);
  send(shard, &Shard::reset_sticky, std::move(run), std::move(reply));
}

void Node::complete_activity(CompleteActivity request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::complete_activity, std::move(request), std::move(reply));
}

void Node::fail_activity(FailActivity request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::fail_activity, std::move(request), std::move(reply));
}

void Node::cancel_activity(CancelActivity request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::cancel_activity, std::move(request), std::move(reply));
}

void Node::heartbeat_activity(HeartbeatActivity request, Reply<HeartbeatResult> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::heartbeat_activity, std::move(request), std::move(reply));
}

void Node::stop_standalone(StopStandalone request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::stop_standalone, std::move(request), std::move(reply));
}

void Node::pause_activities(PauseActivities request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::pause_activities, std::move(request), std::move(reply));
}

void Node::unpause_activities(UnpauseActivities request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::unpause_activities, std::move(request), std::move(reply));
}

void Node::reset_activities(ResetActivities request, Reply<Done> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::reset_activities, std::move(request), std::move(reply));
}

void Node::change_activities(ChangeActivities request, Reply<model::ActivityScheduled> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::change_activities, std::move(request), std::move(reply));
}

void Node::query_workflow(QueryRequest request, Reply<QueryResult> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::query_workflow, std::move(request), std::move(reply));
}

Shard* Node::shard_of_query(const std::string& query_id) {
  uint32_t number = 0;
  const std::string prefix = query_id.substr(0, query_id.find('-'));
  if (!absl::SimpleAtoi(prefix, &number) || number >= shards_.size()) return nullptr;
  return shards_[number].get();
}

void Node::return_query(std::string query_id) {
  auto* home = shard_of_query(query_id);
  if (home == nullptr) return;
  home->executor().post([home, query_id = std::move(query_id)] { home->return_query(query_id); });
}

void Node::answer_query(std::string query_id, QueryAnswer answer, Reply<Done> reply) {
  auto* home = shard_of_query(query_id);
  if (home == nullptr) {
    reply(errors::not_found("query task not found, or already expired"));
    return;
  }
  home->executor().post([home, query_id = std::move(query_id), answer = std::move(answer),
                         reply = std::move(reply)]() mutable {
    home->answer_query(query_id, std::move(answer), std::move(reply));
  });
}

void Node::update_workflow(UpdateRequest request, Reply<UpdateResult> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::update_workflow, std::move(request), std::move(reply));
}

void Node::update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply) {
  auto& shard = shard_of_run(request.start.ns, request.start.workflow_id);
  send(shard, &Shard::update_with_start, std::move(request), std::move(reply));
}

void Node::describe_admission(AdmissionRequest request, Reply<admission::Payload> reply) {
  struct Gathering {
    AdmissionRequest request;
    std::mutex mutex;
    AdmissionDesk::Ready ready{};
    size_t left = 0;
    Reply<admission::Payload> reply;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->reply = std::move(reply);
  std::vector<QueueRef> queues;
  for (const auto kind : {model::WORKFLOW_TASK, model::ACTIVITY_TASK}) {
    queues.push_back({request.ns, kind, request.queue});
    queues.push_back(
        {request.ns, kind, absl::StrCat(std::string(kDurableQueuePrefix), request.queue)});
  }
  gathering->left = queues.size();
  gathering->request = std::move(request);
  for (const auto& queue : queues) {
    auto& owner = shard(shard_of_queue(queue.ns, queue.kind, queue.name));
    owner.executor().post([this, &owner, queue, gathering] {
      owner.count_ready(queue, [this, kind = queue.kind, gathering](absl::StatusOr<int64_t> ready) {
        std::unique_lock lock(gathering->mutex);
        gathering->ready[kind == model::ACTIVITY_TASK ? 1 : 0] += *ready;
        if (--gathering->left > 0) return;
        lock.unlock();
        const auto& asked = gathering->request;
        gathering->reply(desk_->describe(asked.ns, asked.queue, gathering->ready));
      });
    });
  }
}

void Node::describe_queue(QueueRef queue, Reply<QueueView> reply) {
  auto& owner = shard(shard_of_queue(queue.ns, queue.kind, queue.name));
  send(owner, &Shard::describe_queue, std::move(queue), std::move(reply));
}

void Node::change_rules(ChangeRules request, Reply<model::QueueRules> reply) {
  const auto& queue = request.queue;
  auto& owner = shard(shard_of_queue(queue.ns, queue.kind, queue.name));
  send(owner, &Shard::change_rules, std::move(request), std::move(reply));
}

void Node::list_keys(KeysRequest request, Reply<KeysView> reply) {
  const auto& queue = request.queue;
  auto& owner = shard(shard_of_queue(queue.ns, queue.kind, queue.name));
  send(owner, &Shard::list_keys, std::move(request), std::move(reply));
}

void Node::list_queues(ListQueuesRequest request, Reply<std::vector<QueueSummary>> reply) {
  struct Gathering {
    std::mutex mutex;
    size_t left = 0;
    std::vector<QueueSummary> queues;
    Reply<std::vector<QueueSummary>> reply;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->left = shards_.size();
  gathering->reply = std::move(reply);
  for (auto& one : shards_) {
    one->executor().post([&one = *one, request, gathering] {
      one.list_queues(request, [gathering](absl::StatusOr<std::vector<QueueSummary>> part) {
        std::unique_lock lock(gathering->mutex);
        if (part.ok()) {
          gathering->queues.insert(gathering->queues.end(), part->begin(), part->end());
        }
        if (--gathering->left > 0) return;
        lock.unlock();
        std::sort(gathering->queues.begin(), gathering->queues.end(),
                  [](const QueueSummary& a, const QueueSummary& b) {
                    return std::tie(a.queue.name, a.queue.kind) <
                           std::tie(b.queue.name, b.queue.kind);
                  });
        gathering->reply(std::move(gathering->queues));
      });
    });
  }
}

std::vector<MeasuredQueue> Node::queue_metrics(size_t queues_max, size_t keys_max) const {
  using Answer = std::promise<std::vector<MeasuredQueue>>;
  std::vector<std::future<std::vector<MeasuredQueue>>> answers;
  const size_t each = std::max<size_t>(1, queues_max / shards_.size());
  for (const auto& one : shards_) {
    auto answer = std::make_shared<Answer>();
    answers.push_back(answer->get_future());
    one->executor().post([&one = *one, answer, each, keys_max] {
      answer->set_value(one.queues().metrics(each, keys_max));
    });
  }
  std::vector<MeasuredQueue> all;
  for (auto& answer : answers) {
    // A server that is going down answers nobody.
    if (answer.wait_for(std::chrono::seconds(2)) != std::future_status::ready) break;
    auto part = answer.get();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

void Node::purge_key(PurgeKey request, Reply<Purged> reply) {
  const auto& queue = request.queue;
  auto& owner = shard(shard_of_queue(queue.ns, queue.kind, queue.name));
  send(owner, &Shard::purge_key, std::move(request), std::move(reply));
}

void Node::explain(ExplainRequest request, Reply<Explanation> reply) {
  auto& home = shard_of_run(request.run.ns, request.run.workflow_id);
  send(home, &Shard::explain, std::move(request), std::move(reply));
}

void Node::complete_task(CompleteTask request, Reply<TaskCompleted> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::complete_task, std::move(request), std::move(reply));
}

void Node::fail_task(FailTask request, Reply<TaskCompleted> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::fail_task, std::move(request), std::move(reply));
}

void Node::renew_task(RenewTask request, Reply<TaskLease> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::renew_task, std::move(request), std::move(reply));
}

void Node::observe_activity(ObserveActivity request, Reply<ActivityClaim> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::observe_activity, std::move(request), std::move(reply));
}

void Node::signal_run(SignalRun request, Reply<Receipt> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::signal_run, std::move(request), std::move(reply));
}

void Node::update_run(UpdateRun request, Reply<UpdateResult> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::update_run, std::move(request), std::move(reply));
}

void Node::stop_run(StopRun request, Reply<Receipt> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::stop_run, std::move(request), std::move(reply));
}

void Node::repair_run(RunRef run, Reply<Repaired> reply) {
  auto& shard = shard_of_run(run.ns, run.workflow_id);
  send(shard, &Shard::repair_run, std::move(run), std::move(reply));
}

void Node::archive_run(ArchiveRun request, Reply<Archived> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::archive_run, std::move(request), std::move(reply));
}

template <typename Method, typename Request, typename Result>
void Node::send_schedule(const ScheduleRef& schedule, Method method, Request request,
                         Reply<Result> reply) {
  auto& home = shard(shard_of_schedule(schedule.ns, schedule.schedule_id));
  auto answer = counted(std::move(reply));
  if (!answer.has_value()) return;
  home.executor().post(
      [&home, method, request = std::move(request), answer = *std::move(answer)]() mutable {
        (home.schedules().*method)(std::move(request), std::move(answer));
      });
}

void Node::create_schedule(CreateSchedule request, Reply<Done> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::create, std::move(request), std::move(reply));
}

void Node::describe_schedule(ScheduleRef schedule, Reply<model::Schedule> reply) {
  send_schedule(schedule, &ScheduleHost::describe, schedule, std::move(reply));
}

void Node::update_schedule(UpdateSchedule request, Reply<Done> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::update, std::move(request), std::move(reply));
}

void Node::pause_schedule(PauseSchedule request, Reply<Done> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::pause, std::move(request), std::move(reply));
}

void Node::delete_schedule(ScheduleRef schedule, Reply<Done> reply) {
  send_schedule(schedule, &ScheduleHost::remove, schedule, std::move(reply));
}

void Node::trigger_schedule(TriggerSchedule request, Reply<schedule::Fired> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::trigger, std::move(request), std::move(reply));
}

void Node::backfill_schedule(BackfillSchedule request, Reply<std::vector<schedule::Fired>> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::backfill, std::move(request), std::move(reply));
}

void Node::read_schedule_history(ScheduleHistoryRequest request, Reply<ScheduleHistoryPage> reply) {
  const auto ref = request.schedule;
  send_schedule(ref, &ScheduleHost::read_history, std::move(request), std::move(reply));
}

void Node::ask_to_stop(AskToStop request, Reply<AskedToStop> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::ask_to_stop, std::move(request), std::move(reply));
}

void Node::deliver_cancellation(DeliverCancellation request, Reply<CancellationDelivered> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::deliver_cancellation, std::move(request), std::move(reply));
}

void Node::redrive_run(RedriveRun request, Reply<Redriven> reply) {
  auto& shard = shard_of_run(request.run.ns, request.run.workflow_id);
  send(shard, &Shard::redrive_run, std::move(request), std::move(reply));
}

void Node::stop_of_activity(StopOfActivity request, Reply<ActivityStopped> reply) {
  auto& shard = shard_of_run(request.token.ns, request.token.workflow_id);
  send(shard, &Shard::stop_of_activity, std::move(request), std::move(reply));
}

void Node::shutdown_worker(ShutdownWorkerRequest request, Reply<Done> reply) {
  auto left = std::make_shared<std::atomic<size_t>>(shards_.size());
  auto answer = std::make_shared<Reply<Done>>(std::move(reply));
  for (auto& shard : shards_) {
    shard->executor().post([&shard = *shard, request, left, answer] {
      shard.shut_down_worker(request);
      if (--*left == 0) (*answer)(Done{});
    });
  }
}

}  // namespace fairlead::shard
