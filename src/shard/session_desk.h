#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "admission/sessions.h"
#include "base/executor.h"
#include "base/queue_name.h"
#include "base/time.h"
#include "model/model.pb.h"
#include "shard/commit_log.h"
#include "store/store.h"

namespace fairlead::shard {

class SessionHold;

admission::SessionTerms terms_from(const model::SessionTerms& terms);

// Where every shard and the door ask about worker sessions: all of them, behind one lock, with
// their rows. From any thread.
//
// A session's row is written with what changes it, the start of a task for example, in one batch.
// Whoever adds one to a batch of its own holds the lock until that batch is written, so that rows
// of one session follow each other in the order of the decisions.
class SessionDesk : public std::enable_shared_from_this<SessionDesk> {
 public:
  struct Env {
    Clock* clock = nullptr;
    CommitLog* commits = nullptr;
    // Must not look at once: whoever calls is in the middle of something.
    std::function<void(const QueueName&)> look_again;
  };
  using Answer = admission::Sessions::Answer;
  using Closing = admission::Sessions::Closing;

  explicit SessionDesk(Env env) : env_(std::move(env)) {}

  // Loading: rows, then the tasks that workers have.
  absl::Status load(const store::Store& store);
  void restore_running(NamespaceNum ns, const std::string& id);
  // The shards are going: nobody is told to look again.
  void detach();

  void put_worker(NamespaceNum ns, const std::string& worker, admission::SessionWorker facts);
  void hear_of_worker(NamespaceNum ns, const std::string& worker);
  void remove_worker(NamespaceNum ns, const std::string& worker);
  int64_t free_slots(NamespaceNum ns, const std::string& worker);

  // A session of a queue's stream and a poll of this worker: whether a task could go, and if not,
  // when to look again.
  Answer look(const QueueName& queue, const std::string& stream, const std::string& worker);
  // One is on its way, if the worker may have it.
  std::optional<SessionHold> claim(const QueueName& queue, const std::string& stream,
                                   const std::string& worker);
  // A worker has a task of the session no more.
  void release(NamespaceNum ns, const std::string& id);

  // What workers say. The row is written when this returns; wait until it is durable.
  Answer create(NamespaceNum ns, const admission::SessionTerms& terms, const std::string& worker);
  Answer renew(NamespaceNum ns, const std::string& id, const std::string& worker,
               std::optional<int64_t> lease_s);
  Closing close(NamespaceNum ns, const std::string& id, const std::string& worker);
  std::optional<admission::Session> find(NamespaceNum ns, const std::string& id);

  // With `lock` held until the batch is written.
  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] Lock lock() { return Lock(mutex_); }
  // A sign of life of a task's worker is one of its session, too.
  void renew(const Lock& lock, NamespaceNum ns, const std::string& id, const std::string& worker,
             store::WriteBatch* batch);

  void forget_namespace(NamespaceNum ns);
  // Forgets what has been over for long.
  void sweep();

 private:
  friend SessionHold;
  using Key = admission::Sessions::Key;
  const admission::Session& start(const SessionHold& hold, store::WriteBatch* batch);
  void cancel(const SessionHold& hold);
  void write_row(NamespaceNum ns, const std::string& id);
  void note_refused(const Key& session, const QueueName& queue);
  std::vector<QueueName> take_refused(const Key& session);
  void tell(const std::vector<QueueName>& queues);

  Env env_;
  std::mutex mutex_;
  admission::Sessions sessions_;
  // Queues that were refused a task of a session; without an id: for want of a worker's slot.
  absl::btree_map<Key, std::vector<QueueName>> refused_;
  static constexpr size_t kRefusedMax = 10'000;
};

// A task of a session on its way to a worker. It starts, or is given back when this goes.
class SessionHold {
 public:
  SessionHold(std::shared_ptr<SessionDesk> desk, NamespaceNum ns, admission::SessionTerms terms,
              std::string worker)
      : desk_(std::move(desk)), ns_(ns), terms_(std::move(terms)), worker_(std::move(worker)) {}
  SessionHold(SessionHold&& other) noexcept = default;
  SessionHold& operator=(SessionHold&& other) noexcept;
  ~SessionHold();

  // The task goes with this batch, which is written before the desk's lock is given up.
  void start(const SessionDesk::Lock& lock, store::WriteBatch* batch) &&;

 private:
  friend SessionDesk;
  std::shared_ptr<SessionDesk> desk_;
  NamespaceNum ns_;
  admission::SessionTerms terms_;
  std::string worker_;
};

}  // namespace fairlead::shard
