#include "load/worker.h"

#include <memory>

namespace fairlead::load {

namespace {

constexpr DurationNs kPollTimeout = kMinute;
constexpr DurationNs kAnswerTimeout = 10 * kSecond;
constexpr DurationNs kBackOff = 50 * kMillisecond;
constexpr int kDeadlineExceeded = 4;

}  // namespace

Worker::Worker(Transport* transport, Errors* errors, Method method, std::string_view poll,
               const Options& options, Handler handler)
    : transport_(transport),
      errors_(errors),
      method_(method),
      poll_(poll),
      options_(options),
      handler_(std::move(handler)) {}

void Worker::top_up() {
  while (!is_stopped_ && parked() + backing_off_ < options_.pollers &&
         parked() + in_hand_ < options_.in_hand_max) {
    poll();
  }
}

void Worker::poll() {
  // The handle comes back from `call`, the callback needs it later: a small box carries it there.
  auto handle = std::make_shared<Transport::Call*>(nullptr);
  *handle = transport_->call(method_, poll_, kPollTimeout, [this, handle](const Reply& reply) {
    parked_.erase(*handle);
    if (is_stopped_) return;
    if (!reply.is_ok() && reply.code != kDeadlineExceeded) {
      errors_->note(reply);
      ++backing_off_;
      transport_->after(kBackOff, [this] {
        --backing_off_;
        top_up();
      });
      return;
    }
    if (!reply.bytes.empty()) {
      ++in_hand_;
      handler_(reply.bytes);
    }
    top_up();
  });
  parked_.insert(*handle);
}

void Worker::stop() {
  is_stopped_ = true;
  for (Transport::Call* call : parked_) transport_->cancel(call);
}

void Worker::answered() {
  --in_hand_;
  top_up();
}

WorkerSet::WorkerSet(Transport* transport, Requests* requests, Errors* errors,
                     const Worker::Options& options)
    : transport_(transport),
      requests_(requests),
      errors_(errors),
      normal_(transport, errors, Method::kPollWorkflowTask, requests->poll_workflow(), options,
              [this](std::string_view bytes) { handle_workflow(&normal_, bytes); }),
      sticky_(transport, errors, Method::kPollWorkflowTask, requests->poll_sticky(), options,
              [this](std::string_view bytes) { handle_workflow(&sticky_, bytes); }),
      activity_(transport, errors, Method::kPollActivityTask, requests->poll_activity(), options,
                [this](std::string_view bytes) { handle_activity(bytes); }) {}

void WorkerSet::start_workflow_workers() {
  normal_.start();
  sticky_.start();
}

void WorkerSet::stop_workflow_workers() {
  normal_.stop();
  sticky_.stop();
}

void WorkerSet::stop() {
  stop_workflow_workers();
  activity_.stop();
}

// A failed answer is only noted: the server times the task out and hands it out again.
void WorkerSet::handle_workflow(Worker* worker, std::string_view bytes) {
  const WorkflowTask task = read_workflow_task(bytes);
  // An empty poll may still carry hints for the worker.
  if (task.token.empty()) return worker->answered();
  const Answer answer = on_workflow_task(task);
  transport_->call(
      Method::kCompleteWorkflowTask, answer.bytes, kAnswerTimeout,
      [this, worker, index = task.index, is_completion = answer.is_completion](const Reply& reply) {
        if (reply.is_ok()) {
          on_workflow_acked(index, is_completion);
        } else {
          errors_->note(reply);
        }
        worker->answered();
      });
}

void WorkerSet::handle_activity(std::string_view bytes) {
  const ActivityTask task = read_activity_task(bytes);
  if (task.token.empty()) return activity_.answered();
  transport_->call(Method::kCompleteActivityTask, requests_->complete_activity(task.token),
                   kAnswerTimeout, [this](const Reply& reply) {
                     if (reply.is_ok()) {
                       on_activity_acked();
                     } else {
                       errors_->note(reply);
                     }
                     activity_.answered();
                   });
}

}  // namespace fairlead::load
