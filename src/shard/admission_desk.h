#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "admission/ledger.h"
#include "admission/payload.h"
#include "admission/roster.h"
#include "base/queue_name.h"
#include "base/strong.h"
#include "base/time.h"
#include "model/model.pb.h"
#include "store/store.h"

namespace fairlead::shard {

class Permit;
class QueryPlace;

// Where every shard asks whether a task may go: the ledger of all budgets and the roster of
// workers, behind one lock. From any thread.
//
// A queue of the engine has a seat here while somebody uses it. Budgets freed by one queue may be
// another's turn; that one is told to look again, later and on its own executor.
class AdmissionDesk : public std::enable_shared_from_this<AdmissionDesk> {
 public:
  struct Env {
    Clock* clock = nullptr;
    std::function<std::string(NamespaceNum)> namespace_name;
    std::function<ShardId(const QueueName&)> owner_of;
    // Must not look at once: whoever calls is in the middle of something.
    std::function<void(const QueueName&)> look_again;
  };

  struct Seat {
    QueueName name;
    ShardId owner;
    admission::Ledger::Queue* queue = nullptr;
    size_t users = 0;
  };

  using Decision = std::variant<Permit, admission::Refusal>;

  // Gives up a seat.
  struct Leave {
    AdmissionDesk* desk = nullptr;
    void operator()(Seat* seat) const { desk->close(seat); }
  };
  using SeatPtr = std::unique_ptr<Seat, Leave>;

  AdmissionDesk(std::shared_ptr<const admission::Policies> policies, Env env);

  // Loading: tasks that workers have, and dispatches that have a row. False: it counts no more.
  void restore_lease(const QueueName& queue);
  bool restore_dispatch(const QueueName& queue, uint32_t slot, const model::DispatchRow& row);
  void restored();
  // The shards are going: nobody is told to look again.
  void detach();

  void set_policies(std::shared_ptr<const admission::Policies> policies);

  SeatPtr open(const QueueName& queue);
  [[nodiscard]] Decision admit(Seat* seat);
  // For whoever is not the queue's owner.
  [[nodiscard]] Decision admit(const QueueName& queue);
  // A worker is done with a task, and the row that said so is gone.
  void release(const QueueName& queue);
  // The queue has nothing to hand out, or nobody to hand it to.
  void leave(Seat* seat);
  // Forgets what nobody uses.
  void sweep();

  // A worker that registers nowhere polls.
  void seen(const QueueName& queue, const std::string& worker);
  // One that registers, under the name that people know the queue by.
  absl::Status put_worker(NamespaceNum ns, const std::string& queue, const std::string& worker,
                          const admission::Roster::SlotsSaid& slots);
  void hear_of_worker(NamespaceNum ns, const std::string& queue, const std::string& worker);
  void remove_worker(NamespaceNum ns, const std::string& queue, const std::string& worker);
  // Whether the worker is given nothing new; then its slots do not count.
  void drain_worker(NamespaceNum ns, const std::string& queue, const std::string& worker,
                    bool is_draining);

  // A query of either door begins to wait for a worker of the queue, under the name that people
  // know it by. Nothing: as many wait as may.
  [[nodiscard]] std::optional<QueryPlace> place_query(NamespaceNum ns, const std::string& queue);

  // What operators see of the queues of both doors that have a name. `ready` waits in it.
  using Ready = std::array<int64_t, admission::kKinds>;
  admission::Payload describe(NamespaceNum ns, const std::string& queue, const Ready& ready);
  // Why the queue's tasks are not handed out, for people. Empty: no budget is in their way.
  std::string explain(const QueueName& queue);

 private:
  friend Permit;
  friend QueryPlace;
  using QueryLine = std::pair<NamespaceNum, std::string>;
  void start(const Permit& permit, store::WriteBatch* batch);
  void cancel(const Permit& permit);
  void close(Seat* seat);
  void leave(const QueryLine& line);

  // With the lock held.
  admission::QueueId id_of(const QueueName& queue) const;
  Seat* use(const QueueName& queue);
  void unuse(Seat* seat, TimeNs now);
  Decision decide(Seat* seat);
  std::vector<QueueName> take_called();

  void tell(const std::vector<QueueName>& called);

  Env env_;
  std::mutex mutex_;
  admission::Ledger ledger_;
  admission::Roster roster_;
  absl::flat_hash_map<QueryLine, int64_t> queries_;  // that wait for a worker
  absl::flat_hash_map<QueueName, std::unique_ptr<Seat>> seats_;
  absl::flat_hash_map<const admission::Ledger::Queue*, std::vector<Seat*>> seats_of_;
};

// The right to hand out one task. It is used, by a start, or given back when it goes.
class Permit {
 public:
  Permit(std::shared_ptr<AdmissionDesk> desk, AdmissionDesk::Seat* seat,
         admission::Ledger::Grant grant)
      : desk_(std::move(desk)), seat_(seat), grant_(grant) {}
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit();

  // The task goes with this batch, which is written right after.
  void start(store::WriteBatch* batch) &&;

 private:
  friend AdmissionDesk;
  std::shared_ptr<AdmissionDesk> desk_;
  AdmissionDesk::Seat* seat_;
  admission::Ledger::Grant grant_;
};

// A query's place among those that wait for a worker. It is free again when this goes.
class QueryPlace {
 public:
  QueryPlace(std::shared_ptr<AdmissionDesk> desk, AdmissionDesk::QueryLine line)
      : desk_(std::move(desk)), line_(std::move(line)) {}
  QueryPlace(QueryPlace&& other) noexcept = default;
  QueryPlace& operator=(QueryPlace&& other) noexcept;
  ~QueryPlace();

 private:
  std::shared_ptr<AdmissionDesk> desk_;
  AdmissionDesk::QueryLine line_;
};

}  // namespace fairlead::shard
