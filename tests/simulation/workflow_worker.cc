#include "simulation/workflow_worker.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "temporal/api/enums/v1/event_type.pb.h"
#include "temporal/api/update/v1/message.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

WorkflowWorker::WorkflowWorker(const World* world, Options options)
    : world_(*world),
      options_(std::move(options)),
      sticky_queue_(options_.is_sticky ? absl::StrCat("sticky-", options_.name) : ""),
      process_(std::make_shared<Process>(Process{options_.name})) {}

void WorkflowWorker::start() {
  for (int i = 0; i < options_.polls; ++i) {
    poll(false);
    if (options_.is_sticky) poll(true);
  }
}

void WorkflowWorker::die() {
  world_.trace->note(absl::StrCat(options_.name, " dies"));
  world_.wire->hang_up(*process_);
}

void WorkflowWorker::shut_down() {
  ShutdownWorkerRequest request;
  request.set_namespace_(kNamespace);
  request.set_sticky_task_queue(sticky_queue_);
  request.set_identity(options_.name);
  request.set_worker_instance_key(options_.name);
  request.set_task_queue(kFlowQueue);
  world_.probes->hit(Probe::kWorkerShutDown);
  world_.insist<ShutdownWorkerResponse>(
      process_, "ShutdownWorker", request, 3,
      [this](const Outcome&, const ShutdownWorkerResponse&) {
        world_.later(process_, world_.scheduler->between(0, 3 * kSecond), [this] { die(); });
      });
}

void WorkflowWorker::poll(bool on_sticky_queue) {
  PollWorkflowTaskQueueRequest request;
  request.set_namespace_(kNamespace);
  auto* queue = request.mutable_task_queue();
  queue->set_name(on_sticky_queue ? sticky_queue_ : kFlowQueue);
  queue->set_kind(on_sticky_queue ? TASK_QUEUE_KIND_STICKY : TASK_QUEUE_KIND_NORMAL);
  if (on_sticky_queue) queue->set_normal_name(kFlowQueue);
  request.set_identity(options_.name);
  request.set_worker_instance_key(options_.name);
  world_.ask<Task>(process_, "PollWorkflowTaskQueue", request, 70 * kSecond,
                   [this, on_sticky_queue](const Outcome& outcome, Task task) {
                     if (outcome.ok() && !task.task_token().empty()) {
                       take(std::make_shared<Task>(std::move(task)));
                       if (process_->is_alive) poll(on_sticky_queue);
                       return;
                     }
                     world_.later(process_,
                                  world_.scheduler->between(kMillisecond, 500 * kMillisecond),
                                  [this, on_sticky_queue] { poll(on_sticky_queue); });
                   });
}

void WorkflowWorker::take(TaskPtr task) {
  const std::string& run_id = task->workflow_execution().run_id();
  world_.trace->note(absl::StrCat(options_.name, " takes task ", task->started_event_id(), "/",
                                  task->attempt(), " of ", task->workflow_execution().workflow_id(),
                                  task->has_query() ? " (query)" : ""));
  if (task->has_query()) {
    world_.probes->hit(Probe::kDirectQuery);
    if (task->started_event_id() != 0) world_.auditor->fail("a direct query names a task");
  } else {
    world_.auditor->given_workflow_task(
        run_id, task->workflow_execution().workflow_id(), task->started_event_id(), task->attempt(),
        task->started_time().seconds() * kSecond + task->started_time().nanos());
    check_slice(*task);
  }
  if (world_.chance(world_.mood.dies_with_task)) return die();

  const Events events(task->history().events().begin(), task->history().events().end());
  world_.auditor->saw_events(run_id, events);
  before_.erase(run_id);
  if (!events.empty() && events.front().event_id() == 1) {
    cache_.erase(run_id);
    if (task->next_page_token().empty()) {
      replay(task, std::make_unique<Replay>(), events);
    } else {
      world_.probes->hit(Probe::kTaskPaged);
      read_whole(task, task->next_page_token(), std::make_shared<Events>(events), 5);
    }
    return;
  }
  const auto cached = cache_.find(run_id);
  const bool is_known =
      cached != cache_.end() &&
      cached->second->completed_started_id() <= task->previous_started_event_id() &&
      cached->second->started_id() == task->previous_started_event_id();
  if (is_known) {
    world_.probes->hit(Probe::kStickySlice);
    auto run = std::make_unique<Replay>(*cached->second);
    before_[run_id] = std::move(cached->second);
    cache_.erase(cached);
    replay(task, std::move(run), events);
    return;
  }
  world_.probes->hit(Probe::kStickyCacheMissed);
  read_whole(task, "", std::make_shared<Events>(), 5);
}

// What the answer to a poll promises about its history.
void WorkflowWorker::check_slice(const Task& task) {
  const auto& events = task.history().events();
  const auto expect = [&](bool is_right, const char* what) {
    if (is_right) return;
    world_.auditor->fail(absl::StrCat("workflow task ", task.started_event_id(), "/",
                                      task.attempt(), " of run ",
                                      task.workflow_execution().run_id(), ": ", what));
  };
  if (events.empty()) return expect(false, "it has no history");
  const int64_t first = events[0].event_id();
  expect(first == 1 || first == task.previous_started_event_id() + 1,
         "its history begins somewhere in the middle");
  for (int i = 0; i < events.size(); ++i) {
    expect(events[i].event_id() == first + i, "its history has a gap");
  }
  if (!task.next_page_token().empty()) return;
  const auto& last = events[events.size() - 1];
  expect(last.event_type() == EVENT_TYPE_WORKFLOW_TASK_STARTED &&
             last.event_id() == task.started_event_id(),
         "its history does not end with its started event");
  for (const auto& event : events) {
    if (event.event_id() != last.workflow_task_started_event_attributes().scheduled_event_id()) {
      continue;
    }
    expect(event.workflow_task_scheduled_event_attributes().attempt() == task.attempt(),
           "its scheduled event tells another attempt");
  }
}

void WorkflowWorker::read_whole(const TaskPtr& task, std::string page_token,
                                std::shared_ptr<Events> events, int tries) {
  GetWorkflowExecutionHistoryRequest request;
  request.set_namespace_(kNamespace);
  *request.mutable_execution() = task->workflow_execution();
  request.set_maximum_page_size(static_cast<int>(1 + world_.random().below(10)));
  request.set_next_page_token(page_token);
  world_.ask<GetWorkflowExecutionHistoryResponse>(
      process_, "GetWorkflowExecutionHistory", request, 10 * kSecond,
      [this, task, page_token, events, tries](const Outcome& outcome,
                                              const GetWorkflowExecutionHistoryResponse& page) {
        if (!outcome.ok()) {
          if (!outcome.is_unknown() || tries <= 1) return;
          return read_whole(task, page_token, events, tries - 1);
        }
        for (const auto& event : page.history().events()) {
          // Since the task was handed out it may have ended and more may have happened.
          const bool is_wanted = task->has_query() || event.event_id() <= task->started_event_id();
          if (is_wanted) events->push_back(event);
        }
        if (!page.next_page_token().empty()) {
          world_.probes->hit(Probe::kHistoryPaged);
          return read_whole(task, page.next_page_token(), events, tries);
        }
        if (task->has_query()) *events = without_virtual(std::move(*events));
        replay(task, std::make_unique<Replay>(), *events);
      });
}

void WorkflowWorker::replay(const TaskPtr& task, std::unique_ptr<Replay> run,
                            const Events& events) {
  const auto& run_id = task->workflow_execution().run_id();
  for (const auto& event : events) {
    if (run->apply(event)) continue;
    world_.auditor->fail(absl::StrCat("run ", run_id, " of ",
                                      task->workflow_execution().workflow_id(),
                                      " cannot be replayed: ", run->error()));
    return;
  }
  if (task->has_query()) {
    const int signals = run->signals();
    RespondQueryTaskCompletedRequest request;
    request.set_namespace_(kNamespace);
    request.set_task_token(task->task_token());
    request.set_completed_type(QUERY_RESULT_TYPE_ANSWERED);
    request.mutable_query_result()->add_payloads()->set_data(absl::StrCat(signals));
    if (events.empty()) cache_[run_id] = std::move(run);
    world_.ask<RespondQueryTaskCompletedResponse>(
        process_, "RespondQueryTaskCompleted", request, 10 * kSecond,
        [this](const Outcome& outcome, const RespondQueryTaskCompletedResponse&) {
          if (outcome.code == kInvalidArgument) {
            world_.auditor->fail("the answer to a query was refused: " + outcome.message);
          }
        });
    return;
  }
  if (run->started_id() != task->started_event_id()) return;  // it is over: its history went on
  if (run->completed_started_id() != task->previous_started_event_id()) {
    world_.auditor->fail(absl::StrCat("run ", run_id, ": previous_started_event_id is ",
                                      task->previous_started_event_id(), " and should be ",
                                      run->completed_started_id()));
    return;
  }
  decide(task, std::move(run));
}

void WorkflowWorker::decide(const TaskPtr& task, std::unique_ptr<Replay> run) {
  if (world_.chance(world_.mood.task_ignored)) return;
  if (world_.chance(world_.mood.task_failed)) return fail(task);
  const bool is_slow = world_.chance(world_.mood.task_slow);
  const DurationNs thinking = is_slow ? world_.scheduler->between(0, 12 * kSecond)
                                      : world_.scheduler->between(0, 30 * kMillisecond);
  auto commands = run->decide();
  auto held = std::make_shared<std::unique_ptr<Replay>>(std::move(run));
  world_.later(process_, thinking, [this, task, held, commands = std::move(commands)] {
    complete(task, std::move(*held), commands);
  });
}

void WorkflowWorker::fail(const TaskPtr& task) {
  RespondWorkflowTaskFailedRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(task->task_token());
  request.set_cause(WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);
  request.mutable_failure()->set_message("the worker stumbled");
  request.set_identity(options_.name);
  world_.insist<RespondWorkflowTaskFailedResponse>(
      process_, "RespondWorkflowTaskFailed", request, 3,
      [](const Outcome&, const RespondWorkflowTaskFailedResponse&) {});
}

void WorkflowWorker::complete(const TaskPtr& task, std::unique_ptr<Replay> run,
                              std::vector<Command> commands) {
  RespondWorkflowTaskCompletedRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_token(task->task_token());
  request.set_identity(options_.name);
  bool has_closed = false;
  answer_updates(*task, *run, &request);
  for (auto& command : commands) {
    has_closed |= command.command_type() == COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION ||
                  command.command_type() == COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION ||
                  command.command_type() == COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION ||
                  command.command_type() == COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
    *request.add_commands() = std::move(command);
  }
  if (options_.is_sticky) {
    auto* sticky = request.mutable_sticky_attributes();
    sticky->mutable_worker_task_queue()->set_name(sticky_queue_);
    sticky->mutable_worker_task_queue()->set_kind(TASK_QUEUE_KIND_STICKY);
    sticky->mutable_worker_task_queue()->set_normal_name(kFlowQueue);
    sticky->mutable_schedule_to_start_timeout()->set_seconds(5);
  }
  request.set_return_new_workflow_task(world_.chance(0.5));
  request.mutable_capabilities()->set_discard_speculative_workflow_task_with_events(
      world_.chance(0.5));
  // Like a local activity that takes long: the task is renewed although nothing was decided.
  const bool may_renew = request.commands_size() == 0 && world_.mood.task_failed > 0;
  request.set_force_create_new_workflow_task(may_renew && world_.chance(0.2));
  for (const auto& [id, query] : task->queries()) {
    world_.probes->hit(Probe::kAttachedQuery);
    auto& result = (*request.mutable_query_results())[id];
    result.set_result_type(QUERY_RESULT_TYPE_ANSWERED);
    result.mutable_answer()->add_payloads()->set_data(absl::StrCat(run->signals()));
  }

  std::shared_ptr<Replay> kept = std::move(run);
  const bool answers_twice = world_.chance(world_.mood.task_answered_twice);
  world_.insist<RespondWorkflowTaskCompletedResponse>(
      process_, "RespondWorkflowTaskCompleted", request, 3,
      [this, task, kept, has_closed, answers_twice, request](
          const Outcome& outcome, const RespondWorkflowTaskCompletedResponse& response) {
        if (outcome.ok() && response.reset_history_event_id() != 0) {
          roll_back(*task, response.reset_history_event_id());
        } else {
          completed(task, kept, has_closed, outcome);
        }
        if (outcome.ok() && !response.workflow_task().task_token().empty()) {
          world_.probes->hit(Probe::kNewTaskInReply);
          take(std::make_shared<Task>(response.workflow_task()));
        }
        if (!outcome.ok() || !answers_twice || !process_->is_alive) return;
        world_.ask<RespondWorkflowTaskCompletedResponse>(
            process_, "RespondWorkflowTaskCompleted", request, 10 * kSecond,
            [this](const Outcome& again, const RespondWorkflowTaskCompletedResponse&) {
              if (again.ok()) world_.auditor->fail("a workflow task was completed twice");
            });
      });
}

namespace {

template <typename Body>
void add_message(RespondWorkflowTaskCompletedRequest* request, const std::string& id,
                 const Body& body) {
  auto* message = request->add_messages();
  message->set_id(absl::StrCat(id, "/", Body::descriptor()->name()));
  message->set_protocol_instance_id(id);
  message->mutable_body()->PackFrom(body);
}

// As SDKs do it: a command says where in the order of commands a message belongs.
void add_placed_message(RespondWorkflowTaskCompletedRequest* request) {
  auto* command = request->add_commands();
  command->set_command_type(COMMAND_TYPE_PROTOCOL_MESSAGE);
  command->mutable_protocol_message_command_attributes()->set_message_id(
      request->messages(request->messages_size() - 1).id());
}

void add_response(RespondWorkflowTaskCompletedRequest* request, const std::string& id) {
  temporal::api::update::v1::Response response;
  response.mutable_meta()->set_update_id(id);
  response.mutable_outcome()->mutable_success()->add_payloads()->set_data(id);
  add_message(request, id, response);
  add_placed_message(request);
}

}  // namespace

// What becomes of an update is in its id: some are rejected, some completed at once, some later.
void WorkflowWorker::answer_updates(const Task& task, const Replay& run,
                                    RespondWorkflowTaskCompletedRequest* request) {
  for (const auto& id : run.open_updates()) add_response(request, id);
  for (const auto& asked : run.admitted()) {
    const auto& id = asked.meta().update_id();
    answer_update(asked, absl::StrCat(id, "/request"), request);
  }
  for (const auto& message : task.messages()) {
    temporal::api::update::v1::Request asked;
    const auto& id = message.protocol_instance_id();
    if (!message.body().UnpackTo(&asked) || asked.meta().update_id() != id) {
      world_.auditor->fail(absl::StrCat("message ", message.id(), " is not a request"));
      return;
    }
    if (message.event_id() != task.started_event_id() - 1) {
      world_.auditor->fail(absl::StrCat("update ", id, " comes at another event than its task"));
    }
    answer_update(asked, message.id(), request);
  }
}

void WorkflowWorker::answer_update(const temporal::api::update::v1::Request& asked,
                                   const std::string& message_id,
                                   RespondWorkflowTaskCompletedRequest* request) {
  const auto& id = asked.meta().update_id();
  const auto dice = stable_hash(id) % 4;
  if (dice == 0) {
    temporal::api::update::v1::Rejection rejection;
    rejection.set_rejected_request_message_id(message_id);
    *rejection.mutable_rejected_request() = asked;
    rejection.mutable_failure()->set_message("no");
    rejection.mutable_failure()->mutable_application_failure_info()->set_type("Rejected");
    add_message(request, id, rejection);
    return;
  }
  temporal::api::update::v1::Acceptance acceptance;
  acceptance.set_accepted_request_message_id(message_id);
  *acceptance.mutable_accepted_request() = asked;
  add_message(request, id, acceptance);
  add_placed_message(request);
  if (dice > 1) add_response(request, id);
}

// The task never was: the run is again as it was before it.
void WorkflowWorker::roll_back(const Task& task, int64_t event_id) {
  world_.probes->hit(Probe::kTaskDiscarded);
  const auto& run_id = task.workflow_execution().run_id();
  if (event_id != task.previous_started_event_id()) {
    world_.auditor->fail(absl::StrCat("run ", run_id, " is rolled back to event ", event_id));
  }
  const auto before = before_.find(run_id);
  if (before == before_.end()) return;
  cache_[run_id] = std::move(before->second);
  before_.erase(before);
}

void WorkflowWorker::completed(const TaskPtr& task, std::shared_ptr<Replay> run, bool has_closed,
                               const Outcome& outcome) {
  const std::string& run_id = task->workflow_execution().run_id();
  if (outcome.ok()) {
    world_.auditor->told_task_completed(run_id, task->started_event_id());
    if (has_closed) world_.auditor->told_closed(run_id);
    if (options_.is_sticky && !has_closed) cache_[run_id] = std::make_unique<Replay>(*run);
    return;
  }
  if (outcome.code != kInvalidArgument) return;
  if (!absl::StrContains(outcome.message, "UnhandledCommand")) {
    world_.auditor->fail(
        absl::StrCat("run ", run_id, ": a completion was refused: ", outcome.message));
  }
  world_.probes->hit(Probe::kUnhandledCommand);
}

}  // namespace fairlead::sim
