#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"
#include "shard/caller.h"

namespace fairlead::server {

// Makes callbacks by HTTP, all on one thread. Redirects are not followed: they could lead where
// nobody has allowed to go.
class HttpCaller final : public shard::Caller {
 public:
  struct Options {
    size_t connections_max = 64;
    // That wait for a connection. What comes beyond is told to come again.
    size_t waiting_max = 10'000;
  };

  HttpCaller(Clock* clock, Options options);
  explicit HttpCaller(Clock* clock) : HttpCaller(clock, Options()) {}
  ~HttpCaller() override;

  void call(history::Outgoing request, TimeNs until, Done done) override;
  // Nobody hears of what is under way or comes later.
  void stop();

 private:
  struct Call;
  struct Multi;

  void run();
  void begin_waiting();
  void end_finished();

  Clock* const clock_;
  const Options options_;
  std::unique_ptr<Multi> multi_;
  std::mutex mutex_;
  bool is_stopping_ = false;                      // under the mutex
  std::deque<std::unique_ptr<Call>> inbox_;       // under the mutex
  std::deque<std::unique_ptr<Call>> waiting_;     // the thread's own
  std::vector<std::unique_ptr<Call>> under_way_;  // the thread's own
  std::thread thread_;
};

}  // namespace fairlead::server
