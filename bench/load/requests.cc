#include "load/requests.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <random>

#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::load {

namespace {

namespace api = temporal::api;
namespace service = temporal::api::workflowservice::v1;

// Payloads as an SDK's JSON converter would make them, about 150 bytes.
void fill(api::common::v1::Payloads* payloads, std::string_view what) {
  auto* payload = payloads->add_payloads();
  (*payload->mutable_metadata())["encoding"] = "json/plain";
  std::string data = "{\"" + std::string(what) + "\":\"";
  data.append(120 - what.size(), 'x');
  payload->set_data(data + "\"}");
}

std::string identity() { return std::to_string(getpid()) + "@fairlead-load"; }

api::taskqueue::v1::TaskQueue normal_queue(const Names& names) {
  api::taskqueue::v1::TaskQueue queue;
  queue.set_name(names.task_queue);
  queue.set_kind(api::enums::v1::TASK_QUEUE_KIND_NORMAL);
  return queue;
}

api::taskqueue::v1::TaskQueue sticky_queue(const Names& names) {
  api::taskqueue::v1::TaskQueue queue;
  queue.set_name(names.sticky_queue);
  queue.set_kind(api::enums::v1::TASK_QUEUE_KIND_STICKY);
  queue.set_normal_name(names.task_queue);
  return queue;
}

std::string start_template(const Names& names) {
  service::StartWorkflowExecutionRequest request;
  request.set_namespace_(names.name_space);
  request.mutable_workflow_type()->set_name("LoadWorkflow");
  *request.mutable_task_queue() = normal_queue(names);
  fill(request.mutable_input(), "order");
  request.mutable_workflow_task_timeout()->set_seconds(10);
  request.set_identity(identity());
  request.set_workflow_id_reuse_policy(api::enums::v1::WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
  return request.SerializeAsString();
}

template <typename Request>
std::string poll_template(const Names& names, const api::taskqueue::v1::TaskQueue& queue) {
  Request request;
  request.set_namespace_(names.name_space);
  *request.mutable_task_queue() = queue;
  request.set_identity(identity());
  return request.SerializeAsString();
}

std::string answer_template(const Names& names) {
  service::RespondWorkflowTaskCompletedRequest request;
  request.set_namespace_(names.name_space);
  request.set_identity(identity());
  auto* sticky = request.mutable_sticky_attributes();
  *sticky->mutable_worker_task_queue() = sticky_queue(names);
  sticky->mutable_schedule_to_start_timeout()->set_seconds(5);
  return request.SerializeAsString();
}

auto* add_activity(const Names& names, int64_t id,
                   service::RespondWorkflowTaskCompletedRequest* request) {
  auto* command = request->add_commands();
  command->set_command_type(api::enums::v1::COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
  auto* schedule = command->mutable_schedule_activity_task_command_attributes();
  schedule->set_activity_id(std::to_string(id));
  schedule->mutable_activity_type()->set_name("LoadActivity");
  *schedule->mutable_task_queue() = normal_queue(names);
  return schedule;
}

std::string schedule_command(const Names& names, int64_t activity) {
  service::RespondWorkflowTaskCompletedRequest request;
  auto* schedule = add_activity(names, activity, &request);
  fill(schedule->mutable_input(), "charge");
  schedule->mutable_start_to_close_timeout()->set_seconds(60);
  return request.SerializeAsString();
}

std::string key_name(size_t key) { return "key-" + std::to_string(key); }

std::string complete_command() {
  service::RespondWorkflowTaskCompletedRequest request;
  auto* command = request.add_commands();
  command->set_command_type(api::enums::v1::COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
  fill(command->mutable_complete_workflow_execution_command_attributes()->mutable_result(),
       "receipt");
  return request.SerializeAsString();
}

std::string activity_answer_template(const Names& names) {
  service::RespondActivityTaskCompletedRequest request;
  request.set_namespace_(names.name_space);
  request.set_identity(identity());
  fill(request.mutable_result(), "charged");
  return request.SerializeAsString();
}

std::string terminate_template(const Names& names) {
  service::TerminateWorkflowExecutionRequest request;
  request.set_namespace_(names.name_space);
  request.set_identity(identity());
  request.set_reason("the load run is over");
  return request.SerializeAsString();
}

// The number behind the last dash of a workflow id; -1 when it is not one of ours.
int64_t index_of(std::string_view workflow_id) {
  const size_t dash = workflow_id.rfind('-');
  if (dash == std::string_view::npos) return -1;
  int64_t index = -1;
  std::from_chars(workflow_id.data() + dash + 1, workflow_id.data() + workflow_id.size(), index);
  return index;
}

void read_history(std::string_view bytes, WorkflowTask* task) {
  wire::Reader history(bytes);
  while (history.next()) {
    if (history.field() != api::history::v1::History::kEventsFieldNumber) continue;
    wire::Reader event(history.bytes());
    while (event.next()) {
      if (event.field() != api::history::v1::HistoryEvent::kEventTypeFieldNumber) continue;
      const auto type = event.number();
      if (type == api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_STARTED) task->is_first = true;
      if (type == api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_COMPLETED) {
        task->has_activity_result = true;
      }
      break;
    }
  }
}

}  // namespace

Names Names::fresh(const std::string& name_space) {
  std::random_device random;
  char salt[17];
  std::snprintf(salt, sizeof salt, "%08x%08x", random(), random());
  const std::string prefix = std::string("load-") + salt;
  return {name_space, prefix, prefix + "-sticky", prefix + "-"};
}

Requests::Requests(const Names& names)
    : names_(names),
      start_(start_template(names)),
      poll_workflow_(
          poll_template<service::PollWorkflowTaskQueueRequest>(names, normal_queue(names))),
      poll_sticky_(
          poll_template<service::PollWorkflowTaskQueueRequest>(names, sticky_queue(names))),
      poll_activity_(
          poll_template<service::PollActivityTaskQueueRequest>(names, normal_queue(names))),
      answer_(answer_template(names)),
      schedule_one_(answer_ + schedule_command(names, 1)),
      complete_workflow_(answer_ + complete_command()),
      complete_activity_(activity_answer_template(names)),
      terminate_(terminate_template(names)) {}

std::string Requests::workflow_id(int64_t index) const {
  return names_.workflow_prefix + std::to_string(index);
}

std::string_view Requests::start(int64_t index) {
  using Request = service::StartWorkflowExecutionRequest;
  char request_id[37];
  std::snprintf(request_id, sizeof request_id, "%.21s-%014lld", names_.task_queue.c_str(),
                static_cast<long long>(index));
  start_out_ = start_;
  wire::Writer writer(&start_out_);
  writer.string(Request::kWorkflowIdFieldNumber, workflow_id(index));
  writer.string(Request::kRequestIdFieldNumber, request_id);
  return start_out_;
}

std::string_view Requests::schedule_activities(std::string_view token, int64_t activities) {
  using Request = service::RespondWorkflowTaskCompletedRequest;
  answer_out_ = schedule_one_;
  for (int64_t i = 2; i <= activities; ++i) answer_out_ += schedule_command(names_, i);
  wire::Writer(&answer_out_).string(Request::kTaskTokenFieldNumber, token);
  return answer_out_;
}

std::string_view Requests::schedule_keyed(std::string_view token,
                                          const std::vector<KeyedActivity>& activities) {
  service::RespondWorkflowTaskCompletedRequest request;
  request.set_task_token(std::string(token));
  for (const KeyedActivity& activity : activities) {
    auto* schedule = add_activity(names_, activity.id, &request);
    // Longer than any run: an attempt that times out would be queued a second time.
    schedule->mutable_start_to_close_timeout()->set_seconds(3600);
    auto* priority = schedule->mutable_priority();
    priority->set_priority_key(activity.priority);
    priority->set_fairness_key(key_name(static_cast<size_t>(activity.key)));
    priority->set_fairness_weight(static_cast<float>(activity.weight));
  }
  answer_out_ = answer_ + request.SerializeAsString();
  return answer_out_;
}

std::string_view Requests::complete_workflow(std::string_view token) {
  using Request = service::RespondWorkflowTaskCompletedRequest;
  answer_out_ = complete_workflow_;
  wire::Writer(&answer_out_).string(Request::kTaskTokenFieldNumber, token);
  return answer_out_;
}

std::string_view Requests::complete_activity(std::string_view token) {
  using Request = service::RespondActivityTaskCompletedRequest;
  activity_out_ = complete_activity_;
  wire::Writer(&activity_out_).string(Request::kTaskTokenFieldNumber, token);
  return activity_out_;
}

std::string_view Requests::terminate(int64_t index) {
  using Request = service::TerminateWorkflowExecutionRequest;
  using Execution = api::common::v1::WorkflowExecution;
  terminate_out_ = terminate_;
  wire::Writer(&terminate_out_)
      .message(Request::kWorkflowExecutionFieldNumber, [&](wire::Writer& writer) {
        writer.string(Execution::kWorkflowIdFieldNumber, workflow_id(index));
      });
  return terminate_out_;
}

std::string Requests::register_namespace() const {
  service::RegisterNamespaceRequest request;
  request.set_namespace_(names_.name_space);
  request.mutable_workflow_execution_retention_period()->set_seconds(86'400);
  return request.SerializeAsString();
}

std::string Requests::count_backlog() const {
  service::DescribeTaskQueueRequest request;
  request.set_namespace_(names_.name_space);
  *request.mutable_task_queue() = normal_queue(names_);
  request.set_task_queue_type(api::enums::v1::TASK_QUEUE_TYPE_ACTIVITY);
  request.set_report_stats(true);
  return request.SerializeAsString();
}

std::string Requests::configure_queue(const QueueSettings& settings) const {
  service::UpdateTaskQueueConfigRequest request;
  request.set_namespace_(names_.name_space);
  request.set_identity(identity());
  request.set_task_queue(names_.task_queue);
  request.set_task_queue_type(api::enums::v1::TASK_QUEUE_TYPE_ACTIVITY);
  for (size_t key = 0; key < settings.weights.size(); ++key) {
    (*request.mutable_set_fairness_weight_overrides())[key_name(key)] =
        static_cast<float>(settings.weights[key]);
  }
  if (settings.key_rps > 0) {
    auto* update = request.mutable_update_fairness_key_rate_limit_default();
    update->mutable_rate_limit()->set_requests_per_second(static_cast<float>(settings.key_rps));
    update->set_reason("an experiment");
  }
  return request.SerializeAsString();
}

WorkflowTask read_workflow_task(std::string_view bytes) {
  using Response = service::PollWorkflowTaskQueueResponse;
  WorkflowTask task;
  wire::Reader reader(bytes);
  while (reader.next()) {
    if (reader.field() == Response::kTaskTokenFieldNumber) {
      task.token = reader.bytes();
    } else if (reader.field() == Response::kWorkflowExecutionFieldNumber) {
      wire::Reader execution(reader.bytes());
      while (execution.next()) {
        if (execution.field() != api::common::v1::WorkflowExecution::kWorkflowIdFieldNumber) {
          continue;
        }
        task.index = index_of(execution.bytes());
      }
    } else if (reader.field() == Response::kHistoryFieldNumber) {
      read_history(reader.bytes(), &task);
    }
  }
  return task;
}

ActivityTask read_activity_task(std::string_view bytes) {
  ActivityTask task;
  wire::Reader reader(bytes);
  while (reader.next()) {
    if (reader.field() == service::PollActivityTaskQueueResponse::kTaskTokenFieldNumber) {
      task.token = reader.bytes();
    } else if (reader.field() == service::PollActivityTaskQueueResponse::kActivityIdFieldNumber) {
      task.id = reader.bytes();
    }
  }
  return task;
}

int64_t read_backlog(std::string_view bytes) {
  service::DescribeTaskQueueResponse answer;
  return answer.ParseFromString(std::string(bytes)) ? answer.stats().approximate_backlog_count()
                                                    : 0;
}

bool has_settings(std::string_view bytes, const QueueSettings& settings) {
  service::UpdateTaskQueueConfigResponse answer;
  if (!answer.ParseFromString(std::string(bytes))) return false;
  const auto& config = answer.config();
  for (size_t key = 0; key < settings.weights.size(); ++key) {
    const auto found = config.fairness_weight_overrides().find(key_name(key));
    if (found == config.fairness_weight_overrides().end() ||
        found->second != static_cast<float>(settings.weights[key])) {
      return false;
    }
  }
  return settings.key_rps == 0 ||
         config.fairness_keys_rate_limit_default().rate_limit().requests_per_second() ==
             static_cast<float>(settings.key_rps);
}

}  // namespace fairlead::load
