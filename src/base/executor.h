#pragma once

#include "absl/functional/any_invocable.h"
#include "base/time.h"

namespace fairlead {

using Job = absl::AnyInvocable<void()>;

// Runs jobs one after the other: the one thread that may touch what it owns. A real one is a
// thread; a simulation has many in one thread.
class Executor {
 public:
  virtual ~Executor() = default;
  // From any thread. Jobs run in the order in which they were posted.
  virtual void post(Job job) = 0;
  // Asks for `job` once, not before `at`. From the executor's own jobs only.
  virtual void post_at(TimeNs at, Job job) = 0;
  // Whether the caller is one of the executor's own jobs.
  virtual bool is_current() const = 0;
};

}  // namespace fairlead
