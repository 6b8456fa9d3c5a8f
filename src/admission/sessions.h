#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "base/strong.h"
#include "base/time.h"

namespace fairlead::admission {

// What a task, or a worker, asks of a session.
struct SessionTerms {
  std::string id;
  std::vector<std::string> requirements;  // that its worker's capabilities must have
  int64_t lease_s = 120;
  int64_t ttl_s = 1800;
  int64_t activities_max = 1;  // at once
  bool creates = true;         // if there is no such session
  bool reacquires = true;      // if its worker is lost
  friend bool operator==(const SessionTerms&, const SessionTerms&) = default;
};

// One worker's hold on a sequence of activities.
struct Session {
  enum class Status : uint8_t { kActive, kClosed, kExpired, kOrphaned };
  enum class Cause : uint8_t { kNone, kTtl, kLease, kWorker };

  SessionTerms terms;
  std::string queue;  // of its worker
  std::string owner;
  Status status = Status::kActive;
  Cause cause = Cause::kNone;  // why it was lost
  TimeNs created_ns = 0;
  TimeNs heard_ns = 0;    // of it: its last activity or heartbeat
  TimeNs changed_ns = 0;  // acquired, renewed or ended
  TimeNs closed_ns = 0;
  TimeNs lease_ends = 0;
  TimeNs ttl_ends = 0;
  int64_t running = 0;  // attempts that workers have, and tasks on their way to one
};

// A worker, as far as sessions are concerned.
struct SessionWorker {
  std::string queue;
  std::string build;
  absl::flat_hash_set<std::string> capabilities;
  int64_t sessions_max = 0;
  TimeNs heard_ns = 0;
  DurationNs stale_after = kMinute;
};

// Why not, in the words of the API.
enum class SessionRefusal : uint8_t {
  kWorkerUnknown,
  kQueueMismatch,
  kNotFound,
  kNotActive,
  kOwnerMismatch,
  kMissing,
  kRequirements,
  kTooManySessions,
  kOwnedByAnother,
  kTooManyActivities,
  kClosed,
  kNotReacquired,
  kFull,  // as many are remembered as may be
};
std::string_view word_of(SessionRefusal refusal);

// All worker sessions, and who may take a task of one.
//
//   none ──create──► active ──close──► closed                       (for good)
//                     │  ▲
//      no sign of life│  │another worker takes it, if both it and the one who asks allow that
//      of its lease,  ▼  │
//      or its worker  expired, orphaned ──lifetime over──► expired  (for good)
//
// A session is made when the first task of it goes to a worker, or when a worker says so. Between
// the decision and the write the worker has it in reserve: nobody else may take a task of it, and
// if nothing is written, it was never there. What has ended for good is remembered for a day, and
// then its id may be used again. Nothing happens by itself: a session is looked at when somebody
// asks.
class Sessions {
 public:
  using Key = std::pair<NamespaceNum, std::string>;

  // How a session came to whoever asked for it.
  enum class Outcome : uint8_t { kCreated, kReused, kReacquired };
  struct Answer {
    std::optional<SessionRefusal> refusal;
    Outcome outcome = Outcome::kReused;
    TimeNs look_again_at = kNever;     // time alone may change a refusal then
    std::vector<std::string> missing;  // of the requirements
  };

  explicit Sessions(size_t max = kMax) : max_(max) {}

  // Loading: sessions, then tasks that workers have.
  void restore(NamespaceNum ns, Session session);
  void restore_running(NamespaceNum ns, const std::string& id);

  void put_worker(NamespaceNum ns, const std::string& worker, SessionWorker facts);
  void hear_of_worker(NamespaceNum ns, const std::string& worker, TimeNs now);
  // Its sessions are orphans: these.
  std::vector<std::string> remove_worker(NamespaceNum ns, const std::string& worker, TimeNs now);
  const SessionWorker* find_worker(NamespaceNum ns, const std::string& worker) const;
  // How many sessions it could hold besides.
  int64_t free_slots(NamespaceNum ns, const std::string& worker, TimeNs now);

  // Whether a task of a session may go to this worker.
  Answer look(NamespaceNum ns, const SessionTerms& terms, const std::string& worker, TimeNs now);
  // If so, it is on its way there: to be followed by `start` or `cancel`.
  Answer claim(NamespaceNum ns, const SessionTerms& terms, const std::string& worker, TimeNs now);
  // The row that says so is about to be written.
  const Session& start(NamespaceNum ns, const SessionTerms& terms, const std::string& worker,
                       TimeNs now);
  void cancel(NamespaceNum ns, const std::string& id);
  // A worker has a task of it no more.
  void release(NamespaceNum ns, const std::string& id);

  // What workers say themselves. An answer without a refusal is about to be written.
  Answer create(NamespaceNum ns, const SessionTerms& terms, const std::string& worker, TimeNs now);
  Answer renew(NamespaceNum ns, const std::string& id, const std::string& worker,
               std::optional<int64_t> lease_s, TimeNs now);
  struct Closing {
    std::optional<SessionRefusal> refusal;
    bool was_closed = false;
  };
  Closing close(NamespaceNum ns, const std::string& id, const std::string& worker, TimeNs now);

  // As it is now. One that is only held in reserve is not there.
  const Session* find(NamespaceNum ns, const std::string& id, TimeNs now);
  // Those that nobody has to know of any more; or all of a namespace.
  std::vector<Key> forget(TimeNs now);
  std::vector<Key> forget_namespace(NamespaceNum ns);
  size_t size() const { return sessions_.size(); }

  static constexpr size_t kMax = 100'000;
  static constexpr DurationNs kRemembered = kDay;

 private:
  struct Entry {
    Session session;
    bool is_new = false;   // nothing of it was written yet
    std::string reserved;  // the worker that takes it with the next start; empty: nobody
    int64_t on_the_way = 0;
  };

  Entry* find_entry(NamespaceNum ns, const std::string& id);
  void refresh(NamespaceNum ns, Session& session, TimeNs now) const;
  TimeNs lost_at(NamespaceNum ns, const Session& session) const;
  Answer judge(NamespaceNum ns, const SessionTerms& terms, const std::string& worker, bool is_task,
               TimeNs now);
  void acquire(NamespaceNum ns, Entry& entry, const SessionTerms& terms, const std::string& worker,
               TimeNs now);
  void set_owner(NamespaceNum ns, Session& session, const std::string& worker);

  const size_t max_;
  absl::btree_map<Key, Entry> sessions_;
  absl::btree_map<Key, SessionWorker> workers_;
  absl::btree_map<Key, absl::btree_set<std::string>>
      held_;  // by worker: ids, with those in reserve
};

// The stream of a queue that holds a session's tasks, for workers of a build: everything that has
// to be known to hand one out. DO NOT CHANGE: it is in the keys of rows.
std::string session_stream(std::string_view build, const SessionTerms& terms);
bool is_session_stream(std::string_view stream);
// For people: a session's stream by its id, a version as it is.
std::string shown_stream(const std::string& version);
struct SessionStream {
  std::string build;
  SessionTerms terms;
};
// Nothing of a version that only looks like one.
std::optional<SessionStream> parse_session_stream(std::string_view stream);

}  // namespace fairlead::admission
