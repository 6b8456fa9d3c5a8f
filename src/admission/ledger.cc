#include "admission/ledger.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::admission {

struct Ledger::Namespace {
  SharedBudget leases{false};
  SharedBudget rate{true};
};

struct Ledger::Group {
  explicit Group(std::string its_name) : name(std::move(its_name)) {}

  const std::string name;
  SharedBudget rate{true};
};

struct Ledger::Queue : SharedBudget::Waiter {
  Queue(QueueId its_id, Namespace* its_ns) : id(std::move(its_id)), ns(its_ns) {}

  const QueueId id;
  Namespace* const ns;
  Caps caps;
  bool is_capped = false;
  bool is_rated = false;
  Group* group = nullptr;  // by its name; whether a cap holds for it, `caps` knows
  int64_t leases = 0;
  DispatchWindow window;
  std::vector<uint32_t> free_slots;
  std::vector<uint32_t> slots_on_their_way;  // granted, not yet started
  uint32_t next_slot = 0;
  std::optional<Refusal> refusal;
  uint32_t opened = 0;
  bool is_called = false;  // and not fetched yet
};

Ledger::Ledger(std::shared_ptr<const Policies> policies) : policies_(std::move(policies)) {}
Ledger::~Ledger() = default;

// ---- places ------------------------------------------------------------------------------------

Ledger::Namespace& Ledger::get_namespace(const QueueId& id) {
  auto& ns = namespaces_[NamespaceKey(id.ns, id.kind)];
  if (ns == nullptr) ns = std::make_unique<Namespace>();
  return *ns;
}

Ledger::Group& Ledger::get_group(const QueueId& id, const std::string& name) {
  auto& group = groups_[GroupKey(NamespaceKey(id.ns, id.kind), name)];
  if (group == nullptr) group = std::make_unique<Group>(name);
  return *group;
}

Ledger::Queue& Ledger::get(const QueueId& id) {
  auto& queue = queues_[id];
  if (queue == nullptr) {
    queue = std::make_unique<Queue>(id, &get_namespace(id));
    resolve(*queue);
  }
  return *queue;
}

void Ledger::resolve(Queue& queue) {
  queue.caps = policies_->resolve(queue.id.ns, queue.id.queue, queue.id.kind);
  queue.is_capped = queue.caps.is_any();
  queue.is_rated = queue.caps.is_any_rate();
  queue.group = queue.caps.group.empty() ? nullptr : &get_group(queue.id, queue.caps.group);
}

Ledger::Queue* Ledger::open(const QueueId& id) {
  auto& queue = get(id);
  ++queue.opened;
  return &queue;
}

void Ledger::close(Queue* queue, TimeNs now) {
  FL_ASSERT(queue->opened > 0, "closed more often than opened");
  if (--queue->opened == 0) leave(queue, now);
}

void Ledger::sweep(TimeNs now) {
  absl::erase_if(queues_, [&](auto& entry) {
    auto& queue = *entry.second;
    if (queue.opened > 0 || queue.leases > 0 || queue.is_called) return false;
    advance(queue, now);
    return queue.window.is_empty() && queue.waits_at == nullptr;
  });
}

// ---- loading -----------------------------------------------------------------------------------

void Ledger::restore_lease(const QueueId& id) {
  auto& queue = get(id);
  ++queue.leases;
  queue.ns->leases.add_lease();
}

void Ledger::restore_dispatch(const QueueId& id, const DispatchRecord& record) {
  auto& queue = get(id);
  queue.next_slot = std::max(queue.next_slot, record.slot + 1);
  queue.window.load({record.at, record.slot});
  if (record.is_in_namespace) queue.ns->rate.window().load({record.at});
  if (!record.group.empty()) get_group(id, record.group).rate.window().load({record.at});
}

void Ledger::restored(TimeNs now) {
  for (auto& [id, queue] : queues_) {
    queue->window.loaded();
    advance(*queue, now);
  }
  for (auto& [key, ns] : namespaces_) ns->rate.window().loaded();
  for (auto& [key, group] : groups_) group->rate.window().loaded();
  is_restored_ = true;
}

// ---- the decision ------------------------------------------------------------------------------

SharedBudget* Ledger::shared(const Queue& queue, Budget budget) const {
  switch (budget) {
    case Budget::kNamespaceLeases:
      return &queue.ns->leases;
    case Budget::kNamespaceRate:
      return &queue.ns->rate;
    case Budget::kGroupRate:
      return &queue.group->rate;
    default:
      return nullptr;
  }
}

std::optional<Refusal> Ledger::check(Queue& queue, Budget budget, TimeNs now) {
  const Cap& cap = queue.caps[budget];
  SharedBudget* const common = shared(queue, budget);
  SharedBudget::Kept kept;
  DispatchWindow* window = nullptr;
  if (is_rate(budget)) {
    window = common == nullptr ? &queue.window : &common->window();
    common == nullptr ? advance(queue, now) : window->advance(now);
  }
  if (common != nullptr && common->is_waited_for()) {
    call(*common, now);
    kept = common->kept_from(queue);
  }
  const int64_t used = common != nullptr                ? common->used(cap.span)
                       : budget == Budget::kQueueLeases ? queue.leases
                                                        : queue.window.used(cap.span);
  if (used + kept.places < cap.max) return std::nullopt;
  Refusal refusal;
  refusal.budget = budget;
  refusal.span = cap.span;
  refusal.limit = cap.max;
  refusal.used = used;
  if (used < cap.max) {
    refusal.cause = Refusal::Cause::kTurn;
    refusal.retry_at = kept.until;
  } else if (window != nullptr) {
    refusal.retry_at = window->next_free(cap.span, cap.max);
  }
  return refusal;
}

Ledger::Decision Ledger::admit(Queue* queue, TimeNs now) {
  if (!queue->is_capped) return grant(*queue, now);
  if (!is_restored_) {
    Refusal refusal;
    refusal.cause = Refusal::Cause::kUnavailable;
    return refuse(*queue, refusal, now);
  }
  for (const Budget budget : kAllBudgets) {
    if (!queue->caps.has(budget)) continue;
    if (const auto refusal = check(*queue, budget, now)) return refuse(*queue, *refusal, now);
  }
  return grant(*queue, now);
}

// A slot whose row is still to be written must not be given to another: the later row could be
// overwritten by the earlier one.
TimeNs Ledger::advance(Queue& queue, TimeNs now) {
  auto& free = queue.free_slots;
  const auto& busy = queue.slots_on_their_way;
  const auto before = static_cast<std::ptrdiff_t>(free.size());
  const TimeNs present = queue.window.advance(now, &free);
  if (!busy.empty()) {
    const auto is_busy = [&](uint32_t slot) {
      return std::find(busy.begin(), busy.end(), slot) != busy.end();
    };
    free.erase(std::remove_if(free.begin() + before, free.end(), is_busy), free.end());
  }
  return present;
}

uint32_t Ledger::take_slot(Queue& queue) {
  uint32_t slot = 0;
  if (queue.free_slots.empty()) {
    slot = queue.next_slot++;
  } else {
    slot = queue.free_slots.back();
    queue.free_slots.pop_back();
  }
  queue.slots_on_their_way.push_back(slot);
  return slot;
}

bool Ledger::settle_slot(const Grant& grant) {
  auto& queue = *grant.queue;
  const size_t settled = std::erase(queue.slots_on_their_way, grant.slot);
  FL_ASSERT(settled == 1, "a grant is started or cancelled, once");
  if (queue.window.contains(grant.slot)) return false;
  queue.free_slots.push_back(grant.slot);
  return true;
}

Ledger::Grant Ledger::grant(Queue& queue, TimeNs now) {
  Grant grant;
  grant.queue = &queue;
  grant.at = now;
  ++queue.leases;
  queue.ns->leases.add_lease();
  if (queue.is_rated) {
    // One moment for all windows: the latest that any of them has seen.
    const bool is_in_namespace = queue.caps.has(Budget::kNamespaceRate);
    Group* const group = queue.caps.has(Budget::kGroupRate) ? queue.group : nullptr;
    TimeNs time = advance(queue, now);
    if (is_in_namespace) time = std::max(time, queue.ns->rate.window().advance(now));
    if (group != nullptr) time = std::max(time, group->rate.window().advance(now));
    grant.slot = take_slot(queue);
    grant.at = time;
    grant.is_counted = true;
    grant.is_in_namespace = is_in_namespace;
    grant.group = group;
    queue.window.take(time, grant.slot);
    if (is_in_namespace) queue.ns->rate.window().take(time);
    if (group != nullptr) group->rate.window().take(time);
  }
  queue.refusal.reset();
  stop_waiting(queue, now);
  return grant;
}

Refusal Ledger::refuse(Queue& queue, Refusal refusal, TimeNs now) {
  refusal.since = queue.refusal.has_value() ? queue.refusal->since : now;
  queue.refusal = refusal;
  SharedBudget* const budget =
      refusal.cause == Refusal::Cause::kUnavailable ? nullptr : shared(queue, refusal.budget);
  if (queue.waits_at != budget) stop_waiting(queue, now);
  if (budget != nullptr) budget->wait(&queue, refusal.limit, refusal.span);
  return refusal;
}

// What was kept for the queue goes to the next.
void Ledger::stop_waiting(Queue& queue, TimeNs now) {
  SharedBudget* const budget = queue.waits_at;
  if (budget == nullptr) return;
  budget->leave(&queue);
  call(*budget, now);
}

void Ledger::call(SharedBudget& budget, TimeNs now) {
  const size_t before = called_.size();
  budget.call(now, &called_);
  for (size_t i = before; i < called_.size(); ++i) {
    auto* const queue = static_cast<Queue*>(called_[i]);
    if (queue->is_called) called_[i] = nullptr;
    queue->is_called = true;
  }
  std::erase(called_, nullptr);
}

std::vector<Ledger::Queue*> Ledger::take_called() {
  std::vector<Queue*> queues;
  queues.reserve(called_.size());
  for (auto* const waiter : called_) {
    auto* const queue = static_cast<Queue*>(waiter);
    queue->is_called = false;
    queues.push_back(queue);
  }
  called_.clear();
  return queues;
}

// ---- afterwards --------------------------------------------------------------------------------

std::optional<DispatchRecord> Ledger::start(const Grant& grant) {
  if (!grant.is_counted || settle_slot(grant)) return std::nullopt;
  DispatchRecord record;
  record.slot = grant.slot;
  record.at = grant.at;
  record.is_in_namespace = grant.is_in_namespace;
  if (grant.group != nullptr) record.group = static_cast<const Group*>(grant.group)->name;
  return record;
}

void Ledger::cancel(const Grant& grant, TimeNs now) {
  auto& queue = *grant.queue;
  if (grant.is_counted) {
    settle_slot(grant);
    if (queue.window.give_back(grant.at, grant.slot)) queue.free_slots.push_back(grant.slot);
    if (grant.is_in_namespace) {
      queue.ns->rate.window().give_back(grant.at);
      call(queue.ns->rate, now);
    }
    if (grant.group != nullptr) {
      auto& group = *static_cast<Group*>(grant.group);
      group.rate.window().give_back(grant.at);
      call(group.rate, now);
    }
  }
  release(&queue, now);
}

void Ledger::release(Queue* queue, TimeNs now) {
  FL_ASSERT(queue->leases > 0, "a lease came back twice: the caller's bookkeeping is broken");
  --queue->leases;
  queue->ns->leases.end_lease();
  if (queue->ns->leases.is_waited_for()) call(queue->ns->leases, now);
}

void Ledger::leave(Queue* queue, TimeNs now) {
  queue->refusal.reset();
  stop_waiting(*queue, now);
}

void Ledger::set_policies(std::shared_ptr<const Policies> policies) {
  policies_ = std::move(policies);
  for (auto& [id, queue] : queues_) {
    if (queue->waits_at != nullptr) queue->waits_at->leave(queue.get());
  }
  for (auto& [id, queue] : queues_) {
    resolve(*queue);
    if (!queue->refusal.has_value() || queue->is_called) continue;
    queue->is_called = true;
    called_.push_back(queue.get());
  }
}

const QueueId& Ledger::id_of(const Queue* queue) const { return queue->id; }
const Caps& Ledger::caps_of(const Queue* queue) const { return queue->caps; }
const std::optional<Refusal>& Ledger::refusal_of(const Queue* queue) const {
  return queue->refusal;
}

Usage Ledger::usage(Queue* queue, TimeNs now) {
  Usage usage;
  usage.leases = queue->leases;
  usage.namespace_leases = queue->ns->leases.leases();
  advance(*queue, now);
  usage.dispatches = queue->window.used(queue->caps[Budget::kQueueRate].span);
  queue->ns->rate.window().advance(now);
  usage.namespace_dispatches = queue->ns->rate.used(queue->caps[Budget::kNamespaceRate].span);
  if (queue->group != nullptr) {
    queue->group->rate.window().advance(now);
    usage.group_dispatches = queue->group->rate.used(queue->caps[Budget::kGroupRate].span);
  }
  return usage;
}

}  // namespace fairlead::admission
