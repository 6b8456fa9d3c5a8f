#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/time.h"

struct grpc_channel;
struct grpc_completion_queue;

namespace fairlead::load {

// The RPCs that the load client makes. kMethodPaths in transport.cc follows this order.
enum class Method {
  kGetSystemInfo,
  kStartWorkflow,
  kPollWorkflowTask,
  kCompleteWorkflowTask,
  kPollActivityTask,
  kCompleteActivityTask,
  kTerminateWorkflow,
  kDescribeTaskQueue,
  kUpdateTaskQueueConfig,
  kRegisterNamespace,
  kCount,
};

// What came back. `bytes` and `message` are only good during the callback.
struct Reply {
  int code = 0;
  std::string_view bytes;
  std::string_view message;

  bool is_ok() const { return code == 0; }
  // The server does not know the method, or what the request is about.
  bool is_unimplemented() const;
  bool is_not_found() const;
  // Whether the same call may succeed a moment later: the server is busy or still coming up.
  bool is_transient() const;
  std::string describe() const;
};

using Done = std::function<void(const Reply&)>;

// The present on the monotonic clock.
TimeNs monotonic_now();

// Unary gRPC calls and timers on one thread and one completion queue.
//
// It stands on gRPC's C core with registered methods and bytes in and out: the client shares the
// machine with the server that it measures, and the C++ layer's call objects would cost as much
// again as what they wrap. Callbacks run inside `run_until`, never inside `call`; polls that are
// still parked when the transport goes are cancelled.
class Transport {
 public:
  struct Call;

  // Every connection is a channel of its own with its own socket.
  Transport(const std::string& address, int connections);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Sends `request`; connections take turns. The handle is good until `done` was called.
  Call* call(Method method, std::string_view request, DurationNs timeout, Done done);
  void cancel(Call* call);
  void after(DurationNs delay, std::function<void()> what);

  // Runs callbacks and timers until `is_done` holds. False when `timeout` passes first.
  bool run_until(const std::function<bool()>& is_done, DurationNs timeout);
  void run_for(DurationNs duration) {
    run_until([] { return false; }, duration);
  }

  // Connects every channel, waiting for a server that is just coming up. False: nobody answered.
  bool connect_all(DurationNs timeout);

 private:
  struct Channel {
    grpc_channel* channel = nullptr;
    void* methods[static_cast<int>(Method::kCount)] = {};
  };
  struct Timer {
    TimeNs at;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  Call* call_on(Channel& channel, Method method, std::string_view request, DurationNs timeout,
                Done done);
  void finish(Call* call);
  void fire_timers();

  grpc_completion_queue* queue_;
  std::vector<Channel> channels_;
  size_t turn_ = 0;
  std::vector<std::unique_ptr<Call>> spare_;
  std::unordered_set<Call*> open_;
  std::priority_queue<Timer> timers_;
  uint64_t timers_made_ = 0;
};

}  // namespace fairlead::load
