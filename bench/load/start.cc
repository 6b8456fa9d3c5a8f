#include <algorithm>
#include <memory>

#include "load/scenarios.h"

namespace fairlead::load {

namespace {

constexpr DurationNs kCallTimeout = 10 * kSecond;
constexpr int kUnavailable = 14;

}  // namespace

Reply ask(Bench* bench, Method method, const std::string& request, std::string* bytes) {
  struct Box {
    bool is_there = false;
    int code = kUnavailable;
    std::string bytes;
  };
  // It has a life of its own: the answer may come after we stopped waiting.
  const auto box = std::make_shared<Box>();
  bench->transport->call(method, request, kCallTimeout, [box](const Reply& reply) {
    *box = {true, reply.code, std::string(reply.bytes)};
  });
  bench->transport->run_until([&] { return box->is_there; }, 2 * kCallTimeout);
  *bytes = box->bytes;
  return {box->code, *bytes, {}};
}

bool make_namespace(Bench* bench) {
  std::string bytes;
  ask(bench, Method::kRegisterNamespace, bench->requests->register_namespace(), &bytes);
  // A server may need some time to know what it has just registered.
  const TimeNs deadline = monotonic_now() + kMinute;
  const std::string question = bench->requests->count_backlog();
  while (ask(bench, Method::kDescribeTaskQueue, question, &bytes).is_not_found()) {
    if (monotonic_now() >= deadline) return false;
    bench->transport->run_for(kSecond / 2);
  }
  return true;
}

void start_workflow(Bench* bench, int64_t index, std::function<void()> acked) {
  bench->transport->call(Method::kStartWorkflow, bench->requests->start(index), 10 * kSecond,
                         [bench, index, acked = std::move(acked)](const Reply& reply) {
                           if (reply.is_ok()) return acked();
                           bench->errors.note(reply);
                           if (!reply.is_transient()) return;
                           bench->transport->after(50 * kMillisecond, [bench, index, acked] {
                             start_workflow(bench, index, acked);
                           });
                         });
}

bool start_all(Bench* bench, int64_t count, int64_t concurrency) {
  int64_t next = 0;
  int64_t acked = 0;
  std::function<void()> start_next = [&] {
    if (next == count) return;
    start_workflow(bench, next++, [&] {
      ++acked;
      start_next();
    });
  };
  for (int64_t i = 0; i < std::min(count, concurrency); ++i) start_next();
  return bench->transport->run_until([&] { return acked == count; }, bench->timeout);
}

void terminate_all(Bench* bench, int64_t count) {
  int64_t terminated = 0;
  for (int64_t index = 0; index < count; ++index) {
    bench->transport->call(Method::kTerminateWorkflow, bench->requests->terminate(index),
                           kCallTimeout, [&](const Reply&) { ++terminated; });
  }
  bench->transport->run_until([&] { return terminated == count; }, 15 * kSecond);
}

}  // namespace fairlead::load
