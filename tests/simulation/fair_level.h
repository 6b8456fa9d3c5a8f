#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "queue/ideal.h"

namespace fairlead::sim {

// One level of a queue from the moment something waits until nothing does, held against a server
// that works on every waiting key at once (queue/ideal.h). Everything is computed from a list of
// what happened, so that what turns out not to have happened (a task that was stale, a write that
// was lost) is struck out of the list and leaves no trace.
//
// For keys of constant weight that nothing holds back:
//
//   not ahead    when a key is picked, it has not had more than its ideal share
//   not behind   after every pick, nobody who waits is owed more than one task
//
// A task that goes out past the order (on a worker's own queue) is paid for, and may put its key
// ahead and everyone else that much behind; both bounds are wider by one task for each. A pick that
// is struck out may have misled those after it, by one task each; and what a key was owed when its
// last task was taken away is shared out.
class FairLevel {
 public:
  enum class Kind : uint8_t { kArrive, kPick, kPass, kLose };
  struct Event {
    Kind kind;
    std::string key;
    double weight = 0;
    uint64_t task = 0;     // its number; of a pass, which one it is
    uint64_t written = 0;  // the batch; 0: not yet
  };

  void arrive(const std::string& key, double weight, uint64_t task, uint64_t written);
  // Empty, or what is wrong with it.
  std::string pick(const std::string& key, double weight, uint64_t task);
  void pass(const std::string& key, double weight, uint64_t pass);
  // The key's next task has this weight now.
  void reweigh(const std::string& key, double weight) { note_weight(key, weight); }
  // A waiting task, or one that was picked and is stale, is gone.
  void lose(uint64_t task, uint64_t written);
  void set_written(Kind kind, uint64_t task, uint64_t written);
  // Power was lost, and with it every batch after this one. Tasks that wait now are arranged by
  // `arrive` and `lose` afterwards.
  void forget_after(uint64_t written);
  // Nothing waits and nothing is out: the account is closed.
  void close();
  // Something happened for which no bound is known.
  void disturb() { is_disturbed_ = true; }
  bool is_disturbed() const { return is_disturbed_; }
  // Tasks that have come and are neither out nor gone.
  absl::btree_map<uint64_t, std::string> waiting() const;

  struct Judged {
    uint64_t picks = 0;         // with more than one key waiting
    uint64_t intervals = 0;     // with at least `kLong` of these
    uint64_t keys = 0;          // of such intervals
    uint64_t over_crashes = 0;  // picks in intervals that a crash went through
    uint64_t after_passes = 0;  // picks while a key had something to pay for
    uint64_t after_stale = 0;   // picks in intervals in which a task was stale
  };
  static constexpr uint64_t kLong = 8;
  Judged judged;

 private:
  struct Key {
    queue::Ideal::Key number = 0;
    double weight = 0;
    int64_t waiting = 0;
  };

  void apply(const Event& event);
  void play_again();
  void note_weight(const std::string& key, double weight);

  std::vector<Event> events_;
  std::optional<queue::Ideal> ideal_;
  absl::btree_map<std::string, Key> keys_;
  bool is_disturbed_ = false;
  double forfeited_ = 0;
  double ahead_slack_ = 0;
  double behind_slack_ = 0;
  uint64_t passes_ = 0;
  uint64_t picks_ = 0;
  bool has_crashed_ = false;
  bool has_stale_ = false;
};

}  // namespace fairlead::sim
