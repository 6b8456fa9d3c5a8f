#include <algorithm>

#include "load/scenarios.h"

namespace fairlead::load {

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

}  // namespace fairlead::load
