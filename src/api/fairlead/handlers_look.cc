#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/fairlead/requests.h"
#include "api/fairlead/sentences.h"
#include "api/fairlead/task_queue_service.h"
#include "api/fairlead/views.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"

namespace fairlead::api::queues {

namespace {

using errors::invalid_argument;

// ---- queues
// --------------------------------------------------------------------------------------

// Where a list of queues goes on: behind this one. A page stays right when queues come and go.
using QueuePlace = std::pair<std::string, int>;

QueuePlace place_of(const shard::QueueRef& queue) { return {queue.name, queue.kind}; }

std::string encode_place(const QueuePlace& place) {
  return absl::StrCat(place.second, "/", place.first);
}

absl::StatusOr<QueuePlace> decode_place(const std::string& token) {
  if (token.empty()) return QueuePlace();
  if (token.size() < 3 || (token[0] != '1' && token[0] != '2') || token[1] != '/') {
    return invalid_argument("next_page_token did not come from ListTaskQueues");
  }
  return QueuePlace(token.substr(2), token[0] - '0');
}

std::string encode_queues(std::vector<shard::QueueSummary> queues, const std::string& ns,
                          const QueuePlace& after, int page_size) {
  std::sort(queues.begin(), queues.end(),
            [](const auto& a, const auto& b) { return place_of(a.queue) < place_of(b.queue); });
  v1::ListTaskQueuesResponse response;
  const shard::QueueRef* last = nullptr;
  for (const auto& summary : queues) {
    if (place_of(summary.queue) <= after) continue;
    if (response.task_queues_size() == page_size) {
      response.set_next_page_token(encode_place(place_of(*last)));
      break;
    }
    last = &summary.queue;
    auto& entry = *response.add_task_queues();
    *entry.mutable_task_queue() = task_queue_of(summary.queue, ns);
    entry.set_waiting(summary.waiting);
    entry.set_running(summary.running);
    entry.set_keys(static_cast<int64_t>(summary.keys));
    entry.set_pollers(static_cast<int64_t>(summary.pollers));
    entry.set_is_paused(summary.is_paused);
  }
  return response.SerializeAsString();
}

absl::Status list_task_queues(Service& service, v1::ListTaskQueuesRequest& request,
                              const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY_ASSIGN(const int page_size, read_page_size(request.page_size()));
  FL_TRY_ASSIGN(auto after, decode_place(request.next_page_token()));
  service.engine.list_queues(
      {number_of(ns)},
      answer<std::vector<shard::QueueSummary>>(
          call, [ns, after = std::move(after), page_size](std::vector<shard::QueueSummary> queues) {
            return encode_queues(std::move(queues), ns->name(), after, page_size);
          }));
  return absl::OkStatus();
}

absl::Status describe_task_queue(Service& service, v1::DescribeTaskQueueRequest& request,
                                 const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  const shard::AdmissionRequest admission{queue.ns, queue.name};
  service.engine.describe_queue(
      std::move(queue), [call, name = v1::TaskQueue(request.task_queue()), admission,
                         engine = &service.engine](absl::StatusOr<shard::QueueView> view) {
        if (!view.ok()) return fail(*call, view.status());
        auto response = description_of(*view, engine->now());
        *response.mutable_task_queue() = name;
        engine->describe_admission(
            admission, answer<admission::Payload>(
                           call, [response = std::move(response)](const auto& payload) mutable {
                             *response.mutable_admission() = admission_of(payload);
                             return response.SerializeAsString();
                           }));
      });
  return absl::OkStatus();
}

// ---- keys
// ----------------------------------------------------------------------------------------

// A page's token is the last key shown, behind a letter, because a key may be empty.
constexpr char kTokenMark = 'k';

absl::Status read_order(const v1::ListKeysRequest& request, shard::KeysRequest& asked) {
  using v1::ListKeysRequest;
  const std::string& token = request.next_page_token();
  if (request.keys_size() > 0) {
    if (request.keys_size() > kPageMax) {
      return invalid_argument(absl::StrCat(request.keys_size(), " keys are named; at most ",
                                           kPageMax, " may be in one request"));
    }
    for (const auto& key : request.keys()) FL_TRY(check_key(key));
    asked.by = shard::KeysRequest::By::kNamed;
    asked.named.assign(request.keys().begin(), request.keys().end());
    asked.max = asked.named.size();
    return absl::OkStatus();
  }
  switch (request.order()) {
    case ListKeysRequest::ORDER_UNSPECIFIED:
    case ListKeysRequest::ORDER_BACKLOG:
      if (!token.empty()) return invalid_argument("only keys by name have pages");
      asked.by = shard::KeysRequest::By::kBacklog;
      return absl::OkStatus();
    case ListKeysRequest::ORDER_NAME:
      if (!token.empty() && token[0] != kTokenMark) {
        return invalid_argument("next_page_token did not come from ListKeys");
      }
      asked.by = shard::KeysRequest::By::kName;
      if (!token.empty()) asked.after = token.substr(1);
      return absl::OkStatus();
    default:
      return invalid_argument(absl::StrCat("order ", static_cast<int>(request.order()),
                                           " is unknown; 1 is by backlog, 2 is by name"));
  }
}

std::string encode_keys(const shard::KeysView& view, size_t page_size, bool is_behind_unkeyed,
                        bool has_pages, TimeNs now) {
  v1::ListKeysResponse response;
  response.set_total(static_cast<int64_t>(view.total));
  for (const auto& key : view.keys) {
    if (is_behind_unkeyed && key.key.empty()) continue;
    if (static_cast<size_t>(response.keys_size()) == page_size) {
      if (has_pages) {
        response.set_next_page_token(kTokenMark + response.keys(response.keys_size() - 1).key());
      }
      break;
    }
    *response.add_keys() = key_of(key, view.recent, now);
  }
  return response.SerializeAsString();
}

absl::Status list_keys(Service& service, v1::ListKeysRequest& request, const CallPtr& call) {
  shard::KeysRequest asked;
  FL_TRY_ASSIGN(asked.queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const int wanted, read_page_size(request.page_size()));
  asked.max = static_cast<size_t>(wanted);
  FL_TRY(read_order(request, asked));
  const size_t page_size = asked.max;
  const bool has_pages = asked.by == shard::KeysRequest::By::kName;
  // For the engine an empty `after` is the beginning; for a reader who has seen the tasks without a
  // key it is the place behind them.
  const bool is_behind_unkeyed = !request.next_page_token().empty() && asked.after.empty();
  // One more tells whether there is another page.
  if (has_pages) asked.max += is_behind_unkeyed ? 2 : 1;
  service.engine.list_keys(
      std::move(asked),
      answer<shard::KeysView>(call, [page_size, has_pages, is_behind_unkeyed,
                                     engine = &service.engine](const shard::KeysView& view) {
        return encode_keys(view, page_size, is_behind_unkeyed, has_pages, engine->now());
      }));
  return absl::OkStatus();
}

// ---- explain
// -------------------------------------------------------------------------------------

v1::ExplainResponse::State state_of(shard::Explanation::State state) {
  switch (state) {
    case shard::Explanation::State::kNothingToDo:
      return v1::ExplainResponse::STATE_NOTHING_TO_DO;
    case shard::Explanation::State::kWaiting:
      return v1::ExplainResponse::STATE_WAITING;
    case shard::Explanation::State::kRunning:
      return v1::ExplainResponse::STATE_RUNNING;
    case shard::Explanation::State::kBackingOff:
      return v1::ExplainResponse::STATE_BACKING_OFF;
    case shard::Explanation::State::kPaused:
      return v1::ExplainResponse::STATE_PAUSED;
  }
  return v1::ExplainResponse::STATE_UNSPECIFIED;
}

void write_waiting(const shard::Explanation& why, TimeNs now, v1::ExplainResponse& response) {
  const auto& standing = why.standing;
  response.set_tasks_before(standing.tasks_before_in_line);
  response.set_keys_before(static_cast<int64_t>(standing.keys_before));
  response.set_shared_line(why.shared_line);
  response.set_others_before(why.others_before);
  response.set_is_behind_older_order(standing.is_behind_older_order);
  write_holds(standing.holds, *response.mutable_holds());
  response.set_is_queue_capped(standing.is_queue_capped);
  if (why.queue_pause.has_value()) *response.mutable_queue_pause() = pause_of(*why.queue_pause);
  if (why.key_pause.has_value()) *response.mutable_key_pause() = pause_of(*why.key_pause);
  if (standing.queue_ready_ns > now) {
    *response.mutable_queue_ready_in() = duration_of(standing.queue_ready_ns - now);
  }
  if (standing.key_ready_ns > now) {
    *response.mutable_key_ready_in() = duration_of(standing.key_ready_ns - now);
  }
  response.set_parked_polls(static_cast<int64_t>(why.parked_polls));
  response.set_budget(why.admission);
  response.set_version(why.version);
  if (why.last_poll_ns != 0) {
    *response.mutable_last_poll_age() = duration_of(now - why.last_poll_ns);
  }
}

std::string encode_explanation(const shard::ExplainRequest& asked, const std::string& ns,
                               const shard::Explanation& why, const model::QueueRules& rules,
                               TimeNs now) {
  using State = shard::Explanation::State;
  v1::ExplainResponse response;
  response.set_state(state_of(why.state));
  for (auto& sentence : sentences_of(asked, why, rules, now)) {
    response.add_sentences(std::move(sentence));
  }
  if (why.state == State::kNothingToDo) return response.SerializeAsString();
  *response.mutable_task_queue() = task_queue_of(why.queue, ns);
  response.set_sticky_queue(why.sticky_queue);
  response.set_level(level_of(why));
  response.set_key(why.priority.fairness_key());
  response.set_weight(why.weight);
  response.set_weight_source(weight_source_of(why.is_weight_overridden));
  if (why.state == State::kBackingOff) {
    const DurationNs left = why.next_attempt_ns - now;
    *response.mutable_next_attempt_in() = duration_of(std::max<DurationNs>(left, 0));
  } else {
    *response.mutable_age() = duration_of(std::max<DurationNs>(now - why.since_ns, 0));
  }
  response.set_worker_identity(why.worker_identity);
  if (why.state == State::kWaiting) write_waiting(why, now, response);
  return response.SerializeAsString();
}

absl::Status explain(Service& service, v1::ExplainRequest& request, const CallPtr& call) {
  const int64_t id_bytes = service.options.limits.id_bytes;
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_workflow_id(request.workflow_id(), id_bytes));
  FL_TRY(check_run_id(request.run_id()));
  FL_TRY(check_length(request.activity_id(), "ActivityId", id_bytes));
  shard::ExplainRequest asked;
  asked.run = {number_of(ns), request.workflow_id(), request.run_id()};
  asked.activity_id = request.activity_id();
  auto reply = [asked, ns, call,
                engine = &service.engine](absl::StatusOr<shard::Explanation> why) mutable {
    if (!why.ok()) return fail(*call, why.status());
    if (why->state != shard::Explanation::State::kWaiting) {
      return succeed(*call, encode_explanation(asked, ns->name(), *why, {}, engine->now()));
    }
    // The sentences name limits and caps, which the queue knows.
    shard::QueueRef queue = why->queue;
    engine->describe_queue(
        std::move(queue),
        answer<shard::QueueView>(call, [asked = std::move(asked), ns, why = *std::move(why),
                                        engine](const shard::QueueView& view) {
          return encode_explanation(asked, ns->name(), why, view.rules, engine->now());
        }));
  };
  service.engine.explain(asked, std::move(reply));
  return absl::OkStatus();
}

}  // namespace

void add_look_handlers(Registrar& registrar) {
  registrar.serve(list_task_queues);
  registrar.serve(describe_task_queue);
  registrar.serve(list_keys);
  registrar.serve(explain);
}

}  // namespace fairlead::api::queues
