#pragma once

#include "api/fairlead/task_queue.pb.h"
#include "api/fairlead/task_queue_service.h"
#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"

namespace fairlead::api::queues {

// The service on an engine that notes what it is asked.
class QueuesTest : public testing::ServiceTest {
 protected:
  QueuesTest() {
    register_task_queue_service(methods, engine, {});
    serving_ = true;
  }

  static std::string path(const std::string& method) {
    return std::string("/") + kTaskQueueService + "/" + method;
  }

  // `rest` is the text of the request without its queue, which is orders (activity) in `default`.
  template <typename Request>
  static Request about_orders(const std::string& rest = "") {
    return from_text<Request>(
        R"(task_queue { namespace: "default" name: "orders" type: TASK_QUEUE_TYPE_ACTIVITY } )" +
        rest);
  }

  template <typename Response, typename Request>
  Response ask(const std::string& method, const Request& request) {
    return succeed<Response>(path(method), request);
  }

  // The requests that nothing but their queue is wrong with.
  template <typename Request>
  std::vector<Spoiled<Request>> bad_queues() {
    using testing::kInvalidArgument;
    using testing::kNotFound;
    return {
        {[](Request& r) { r.clear_task_queue(); }, kInvalidArgument, "Namespace is empty."},
        {[](Request& r) { r.mutable_task_queue()->set_namespace_("nope"); }, kNotFound,
         "Namespace nope is not found."},
        {[](Request& r) { r.mutable_task_queue()->clear_name(); }, kInvalidArgument,
         "missing task queue name"},
        {[](Request& r) { r.mutable_task_queue()->set_name("/_sys/orders/1"); }, kInvalidArgument,
         "task queue name cannot start with reserved prefix /_sys/"},
        {[](Request& r) { r.mutable_task_queue()->clear_type(); }, kInvalidArgument,
         "task queue type is not set"},
        {[](Request& r) { r.mutable_task_queue()->set_type(static_cast<v1::TaskQueueType>(3)); },
         kInvalidArgument, "task queue type 3 is unknown; 1 is workflow, 2 is activity"},
    };
  }
};

}  // namespace fairlead::api::queues
