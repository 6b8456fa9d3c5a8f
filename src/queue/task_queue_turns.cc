// Which level's turn it is, in each target apart.

#include "queue/task_queue.h"

namespace fairlead::queue {

namespace {

constexpr int32_t kTurn = 100;  // what is owed is counted in hundredths

}  // namespace

// The most urgent level that has something to do. With a share for lower levels each level sets
// that part of every turn aside until it is a whole one, and leaves that turn to the next level
// that has something to do. So of n turns that a level might have had, the levels below it got
// share * n, to within one.
TaskQueue::Turn TaskQueue::take_turn(uint32_t target) {
  Turn turn;
  turn.target = target;
  turn.share = settings_.lower_level_share;
  for (uint32_t level = 1; level <= levels(); ++level) {
    if (at(lane_of(level, target)).domain.actives() == 0) continue;
    if (turn.level != 0) {
      // There is somebody to yield to.
      auto& owes = at(lane_of(turn.level, target)).owes;
      owes += static_cast<int32_t>(turn.share);
      if (owes < kTurn) {
        turn.is_counted = true;
        return turn;
      }
      owes -= kTurn;
      turn.yielded |= uint64_t{1} << (turn.level - 1);
    }
    turn.level = level;
    if (turn.share == 0) return turn;
  }
  return turn;
}

// A pick that did not end in a start was nobody's turn.
void TaskQueue::give_turn_back(const Turn& turn) {
  if (turn.share == 0) return;
  for (uint32_t level = 1; level < turn.level; ++level) {
    if ((turn.yielded >> (level - 1) & 1) != 0) {
      at(lane_of(level, turn.target)).owes += kTurn - static_cast<int32_t>(turn.share);
    }
  }
  if (turn.is_counted)
    at(lane_of(turn.level, turn.target)).owes -= static_cast<int32_t>(turn.share);
}

void TaskQueue::commit_turn(const Turn& turn) {
  if (turn.share == 0) return;
  for (uint32_t level = 1; level < turn.level; ++level) {
    if ((turn.yielded >> (level - 1) & 1) != 0) {
      at(lane_of(level, turn.target)).owes_committed -= kTurn - static_cast<int32_t>(turn.share);
    }
  }
  if (turn.is_counted)
    at(lane_of(turn.level, turn.target)).owes_committed += static_cast<int32_t>(turn.share);
  if (turn.is_counted || turn.yielded != 0) state_changed_ = true;
}

}  // namespace fairlead::queue
