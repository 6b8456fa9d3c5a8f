#include <algorithm>
#include <memory>
#include <utility>

#include "http/scenarios.h"

namespace fairlead::http_load {

namespace {

json::object value(const char* blob) { return {{"codec", "avro"}, {"blob", blob}}; }
// An empty list and "hi", as the SDK writes them.
json::object empty_list() { return value("wwHioz3/VYAiNwwA"); }
json::object hi() { return value("wwHioz3/VYAiNwoEaGk="); }

void complete(Bench* bench, const json::object& task, json::object command,
              std::function<void()> then) {
  bench->client->post("worker/workflow-tasks/" + text(task, "task_id") + "/complete",
                      {{"lease_owner", task.at("lease_owner")},
                       {"workflow_task_attempt", task.at("workflow_task_attempt")},
                       {"commands", json::array{std::move(command)}}},
                      [then = std::move(then)](const Answer& answer) {
                        if (answer.is_ok()) then();
                      });
}

}  // namespace

std::string text(const json::object& object, std::string_view name) {
  const auto* found = object.if_contains(boost::json::string_view(name.data(), name.size()));
  if (found == nullptr || !found->is_string()) return "";
  return {found->as_string().data(), found->as_string().size()};
}

void register_worker(Bench* bench, const std::string& worker, const std::string& queue,
                     std::function<void()> then) {
  bench->client->post("worker/register",
                      {{"worker_id", worker}, {"task_queue", queue}, {"runtime", "bench"}},
                      [then = std::move(then)](const Answer& answer) {
                        if (answer.is_ok()) then();
                      });
}

void start(Bench* bench, const std::string& id, const std::string& queue,
           std::function<void()> then) {
  bench->client->post("workflows",
                      {{"workflow_id", id},
                       {"workflow_type", "bench"},
                       {"task_queue", queue},
                       {"input", json::array{std::string(150, 'x')}}},
                      [then = std::move(then)](const Answer& answer) {
                        if (answer.is_ok()) then();
                      });
}

void poll(Bench* bench, const char* kind, const std::string& worker, const std::string& queue,
          int64_t seconds, std::function<void(Task)> then) {
  bench->client->post(std::string("worker/") + kind + "-tasks/poll",
                      {{"worker_id", worker}, {"task_queue", queue}, {"timeout_seconds", seconds}},
                      [then = std::move(then)](const Answer& answer) {
                        const auto* task = answer.body.if_contains("task");
                        then(task != nullptr && task->is_object() ? &task->as_object() : nullptr);
                      });
}

void finish_workflow(Bench* bench, const json::object& task, std::function<void()> then) {
  complete(bench, task, {{"type", "complete_workflow"}, {"result", hi()}}, std::move(then));
}

void schedule_activity(Bench* bench, const json::object& task, const std::string& queue) {
  complete(bench, task,
           {{"type", "schedule_activity"},
            {"activity_type", "bench"},
            {"queue", queue},
            {"arguments", empty_list()}},
           [] {});
}

void complete_activity(Bench* bench, const json::object& task) {
  bench->client->post("worker/activity-tasks/" + text(task, "task_id") + "/complete",
                      {{"lease_owner", task.at("lease_owner")},
                       {"activity_attempt_id", task.at("activity_attempt_id")},
                       {"result", hi()}},
                      [](const Answer&) {});
}

bool repeat(Bench* bench, int64_t count, int64_t at_once,
            const std::function<void(int64_t, std::function<void()>)>& one) {
  struct Progress {
    int64_t begun = 0;
    int64_t done = 0;
    std::function<void()> next;
  };
  // Answers may come after the time is over.
  const auto progress = std::make_shared<Progress>();
  progress->next = [weak = std::weak_ptr(progress), count, one] {
    const auto self = weak.lock();
    if (self == nullptr || self->begun == count) return;
    one(self->begun++, [weak] {
      const auto again = weak.lock();
      if (again == nullptr) return;
      ++again->done;
      again->next();
    });
  };
  for (int64_t i = 0; i < std::min(count, at_once); ++i) progress->next();
  return bench->client->run_until([&] { return progress->done == count; }, bench->timeout);
}

}  // namespace fairlead::http_load
