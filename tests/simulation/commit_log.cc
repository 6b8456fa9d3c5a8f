#include "simulation/commit_log.h"

#include "base/assert.h"

namespace fairlead::sim {

void SimCommitLog::write(const store::WriteBatch& batch) {
  ++written_;
  if (watch != nullptr) watch(batch);
  switch (sabotage_) {
    case Sabotage::kKeepTaskRows:
    case Sabotage::kForgetWakeups:
    case Sabotage::kForgetLetters:
    case Sabotage::kSplitBatches:
    case Sabotage::kForgetAccounts:
      return write_sabotaged(batch);
    default:
      FL_ASSERT(store_->write(batch).ok(), "the simulated disk has room");
  }
}

void SimCommitLog::write_sabotaged(const store::WriteBatch& batch) {
  using Kind = store::WriteBatch::Kind;
  store::WriteBatch first = std::exchange(rest_, {});
  for (const auto& op : batch.ops()) {
    const char table = op.key.front();
    const bool is_kept_row = sabotage_ == Sabotage::kKeepTaskRows && table == 'T';
    const bool is_wakeup = sabotage_ == Sabotage::kForgetWakeups && table == 'W';
    const bool is_letter = sabotage_ == Sabotage::kForgetLetters && table == 'O';
    const bool is_account = sabotage_ == Sabotage::kForgetAccounts && table == 'A';
    if ((is_kept_row && op.kind == Kind::kErase) ||
        ((is_wakeup || is_letter || is_account) && op.kind == Kind::kPut)) {
      continue;
    }
    auto& target = sabotage_ == Sabotage::kSplitBatches && table == 'T' ? rest_ : first;
    if (op.kind == Kind::kPut) target.put(op.key, op.value);
    if (op.kind == Kind::kErase) target.erase(op.key);
    if (op.kind == Kind::kEraseRange) target.erase_range(op.key, op.value);
  }
  FL_ASSERT(store_->write(first).ok(), "the simulated disk has room");
}

void SimCommitLog::after_durable(Job effect) {
  if (durable_ == written_ || sabotage_ == Sabotage::kReplyBeforeDurable) {
    effect();
    return;
  }
  waiting_.push_back(std::move(effect));
  if (!is_busy_) begin_sync();
}

void SimCommitLog::begin_sync() {
  is_busy_ = true;
  syncing_ = std::exchange(waiting_, {});
  if (syncing_.size() > 1) probes_->hit(Probe::kGroupCommit);
  const bool is_safe_early = scheduler_->random().chance(0.5);
  if (is_safe_early) FL_ASSERT(store_->sync().ok(), "the simulated disk works");
  // Mostly a fast disk, now and then a slow one.
  const bool is_slow = scheduler_->random().chance(0.2);
  scheduler_->after(scheduler_->between(50'000, is_slow ? 5 * kMillisecond : 500'000), owner_,
                    [this, is_safe_early, target = written_] {
                      if (!is_safe_early) FL_ASSERT(store_->sync().ok(), "the disk works");
                      end_sync(target);
                    });
}

void SimCommitLog::end_sync(uint64_t target) {
  durable_ = target;
  tell_next();
}

// One effect at a time, with moments between them: a crash may let the first hear and not the
// second.
void SimCommitLog::tell_next() {
  if (syncing_.empty()) {
    is_busy_ = false;
    if (!waiting_.empty()) begin_sync();
    return;
  }
  Job effect = std::move(syncing_.front());
  syncing_.pop_front();
  effect();
  scheduler_->after(scheduler_->between(0, 20'000) + 1, owner_, [this] { tell_next(); });
}

}  // namespace fairlead::sim
