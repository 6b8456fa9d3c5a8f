#pragma once

#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "history/run.h"

namespace fairlead::history {

// Makes a run's state out of its history, event by event, as it was when the last of them was
// written: what waits in queues or with workers is as if it did not yet.
//
//   Rebuild rebuild(who);                        the state of a run that has not begun
//   for (event of the history) rebuild.apply(event, its size);
class Rebuild {
 public:
  explicit Rebuild(model::RunState who) {
    run_.state = std::move(who);
    run_.state.set_next_event_id(1);
  }

  Run& run() { return run_; }

  // `event` as Codec::read_event has it; `bytes` is what it takes in the history.
  void apply(const model::Event& event, int64_t bytes);

  // Activities whose start is in the history and whose end is not: scheduled id -> started id.
  const absl::btree_map<int64_t, int64_t>& started_activities() const { return started_; }
  // What the run has asked of other runs without an answer so far, by the id of the event.
  const absl::btree_map<int64_t, model::Event>& unanswered() const { return unanswered_; }

 private:
  void start(const model::Event& event);
  void add_callback(const std::string& door, const std::string& request_id,
                    const model::Event& event);
  void apply_options(const model::Event& event);
  void apply_task(const model::Event& event);
  void apply_activity(const model::Event& event);
  void apply_timer(const model::Event& event);
  void apply_other_run(const model::Event& event);
  void apply_update(const model::Event& event);
  void close(const model::Event& event);

  Run run_;
  absl::btree_map<int64_t, int64_t> started_;
  absl::btree_map<int64_t, model::Event> unanswered_;
};

}  // namespace fairlead::history
