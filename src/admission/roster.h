#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "admission/policy.h"
#include "base/time.h"

namespace fairlead::admission {

// What the workers of a queue say they can do at once. It is told, not enforced: a worker polls
// only with a slot free.
struct Slots {
  int64_t active_workers = 0;
  int64_t stale_workers = 0;
  int64_t configured = 0;
};

// The workers of each queue: who is there, and how many tasks of a kind it takes at once.
//
// Workers of one door register and send heartbeats; workers of the other are seen when they poll.
// Who has not been heard of for a while is stale: it stays on the list and does not count.
class Roster {
 public:
  // What a worker counts for that does not say.
  static constexpr int64_t kSlotsUnsaid = 100;
  static constexpr size_t kWorkersPerQueueMax = 10'000;

  struct Place {
    std::string ns;
    std::string queue;

    friend bool operator==(const Place&, const Place&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Place& place) {
      return H::combine(std::move(state), place.ns, place.queue);
    }
  };
  // By kind; nothing said is kSlotsUnsaid.
  using SlotsSaid = std::array<std::optional<int64_t>, kKinds>;

  // A worker registers, for the first time or again.
  absl::Status put(const Place& place, const std::string& worker, const SlotsSaid& slots,
                   TimeNs now);
  // A worker that never registers polls for tasks of a kind.
  void seen(const Place& place, const std::string& worker, TaskKind kind, TimeNs now);
  // False if nobody of that name has registered.
  bool heartbeat(const Place& place, const std::string& worker, TimeNs now);
  bool remove(const Place& place, const std::string& worker);
  // A draining worker is given nothing new and does not count.
  bool set_draining(const Place& place, const std::string& worker, bool is_draining);

  Slots slots(const Place& place, TaskKind kind, DurationNs stale_after, TimeNs now) const;
  // Forgets workers that have not been heard of since.
  void forget(TimeNs since);
  size_t queues() const { return queues_.size(); }

 private:
  struct Worker {
    std::array<int64_t, kKinds> slots{};
    TimeNs heard_at = 0;
    bool is_registered = false;
    bool is_draining = false;
  };
  Worker* find(const Place& place, const std::string& worker);

  absl::flat_hash_map<Place, absl::btree_map<std::string, Worker>> queues_;
};

}  // namespace fairlead::admission
