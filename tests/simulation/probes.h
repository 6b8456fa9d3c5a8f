#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fairlead::sim {

// Rare rooms that a night of runs has to visit. A simulator that only ever sees the easy ones
// proves nothing, so a whole run fails if one of these was never reached.
enum class Probe : uint8_t {
  kGroupCommit,
  kUnsyncedWritesLost,
  kCrashWithCallsOpen,
  kReplyLost,
  kTaskReturned,
  kPollWithdrawn,
  kStaleTask,
  kStickySlice,
  kStickyCacheMissed,
  kStickyTimeout,
  kVirtualTask,
  kVirtualTaskCompleted,
  kBufferedFlush,
  kUnhandledCommand,
  kTaskFailed,
  kTaskTimedOut,
  kNewTaskInReply,
  kHistoryPaged,
  kTaskPaged,
  kHistoryAwaited,
  kAttachedQuery,
  kDirectQuery,
  kActivityRetried,
  kActivityTimedOut,
  kActivityCanceled,
  kActivityCompletedById,
  kStaleActivityToken,
  kTimerCanceled,
  kSignalDeduplicated,
  kStartDeduplicated,
  kSignalWithStart,
  kRunReplaced,
  kWorkerShutDown,
  kRunTimedOut,
  kRunTerminated,
  kRunCanceled,
  kRunFailed,
  kRunDeleted,
  kLimitHeld,
  kContinuedAsNew,
  kRunRetried,
  kChildReported,
  kChildNotStarted,
  kChildOfClosedParent,
  kSignalFromRun,
  kUpdateCompleted,
  kUpdateRejected,
  kUpdateCutShort,
  kTaskDiscarded,
  kEagerStart,
  kCount,
};

inline constexpr std::array<std::string_view, static_cast<size_t>(Probe::kCount)> kProbeNames = {
    "group commit",
    "unsynced writes lost",
    "crash with calls open",
    "reply lost",
    "task returned",
    "poll withdrawn",
    "stale task",
    "sticky slice",
    "sticky cache missed",
    "sticky timeout",
    "virtual task",
    "virtual task completed",
    "buffered flush",
    "unhandled command",
    "task failed",
    "task timed out",
    "new task in reply",
    "history paged",
    "task paged",
    "history awaited",
    "attached query",
    "direct query",
    "activity retried",
    "activity timed out",
    "activity canceled",
    "activity completed by id",
    "stale activity token",
    "timer canceled",
    "signal deduplicated",
    "start deduplicated",
    "signal with start",
    "run replaced",
    "worker shut down",
    "run timed out",
    "run terminated",
    "run canceled",
    "run failed",
    "run deleted",
    "limit held",
    "continued as new",
    "run retried",
    "child reported",
    "child not started",
    "child of a closed parent",
    "signal from a run",
    "update completed",
    "update rejected",
    "update cut short by the end of its run",
    "task discarded",
    "eager start",
};

class Probes {
 public:
  void hit(Probe probe, uint64_t times = 1) { hits_[static_cast<size_t>(probe)] += times; }
  uint64_t hits(Probe probe) const { return hits_[static_cast<size_t>(probe)]; }

 private:
  std::array<uint64_t, static_cast<size_t>(Probe::kCount)> hits_{};
};

}  // namespace fairlead::sim
