#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/queue_name.h"
#include "base/time.h"
#include "model/model.pb.h"
#include "simulation/probes.h"
#include "store/store.h"

namespace fairlead::sim {

// Reads every batch that is written, in order, and counts the tasks that workers have by the rows
// that prove it: of a workflow task its run's, of an activity its own. No batch may bring a queue
// or a key above the cap that its rules set; what was out when a cap was lowered may stay out.
class CapWatch {
 public:
  CapWatch(Clock* clock, Probes* probes, std::function<void(const std::string&)> complain)
      : clock_(clock), probes_(probes), complain_(std::move(complain)) {}

  void saw(const store::WriteBatch& batch);
  // Power was lost: what the store has now is what was.
  void read_again(const store::Store& store, uint16_t shards);

  struct Out {
    QueueName queue;
    std::string key;
  };
  // What workers have, by the rows that prove it.
  const absl::btree_map<std::string, Out>& out() const { return out_; }

 private:
  using Queue = std::pair<uint8_t, std::string>;  // type, name
  using Line = std::pair<Queue, std::string>;     // the key
  struct Rules {
    TimeNs since = 0;
    model::QueueRules rules;
  };

  static std::optional<Out> read(std::string_view key, std::string_view value);
  void put(const std::string& row, std::optional<Out> out);
  void set_rules(std::string_view key, std::string_view value);
  template <typename Cap>
  std::optional<uint32_t> most(const Queue& queue, Cap cap) const;

  Clock* const clock_;
  Probes* const probes_;
  const std::function<void(const std::string&)> complain_;
  absl::btree_map<std::string, Out> out_;
  absl::btree_map<Queue, int64_t> of_queue_;
  absl::btree_map<Line, int64_t> of_key_;
  absl::btree_map<Queue, std::deque<Rules>> rules_;  // the newest last
};

}  // namespace fairlead::sim
