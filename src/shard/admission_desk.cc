#include "shard/admission_desk.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// A dispatch is counted for a minute at most, whichever way minutes are cut.
constexpr DurationNs kDispatchCounts = 2 * kMinute;

admission::TaskKind kind_of(const QueueName& queue) {
  return queue.type == model::ACTIVITY_TASK ? admission::TaskKind::kActivity
                                            : admission::TaskKind::kWorkflow;
}

}  // namespace

AdmissionDesk::AdmissionDesk(std::shared_ptr<const admission::Policies> policies, Env env)
    : env_(std::move(env)), ledger_(std::move(policies)) {}

admission::QueueId AdmissionDesk::id_of(const QueueName& queue) const {
  return {env_.namespace_name(queue.ns), std::string(shown_queue(queue.name)), kind_of(queue)};
}

AdmissionDesk::Seat* AdmissionDesk::use(const QueueName& queue) {
  auto& seat = seats_[queue];
  if (seat == nullptr) {
    seat = std::make_unique<Seat>();
    seat->name = queue;
    seat->owner = env_.owner_of(queue);
    seat->queue = ledger_.open(id_of(queue));
    seats_of_[seat->queue].push_back(seat.get());
  }
  ++seat->users;
  return seat.get();
}

void AdmissionDesk::unuse(Seat* seat, TimeNs now) {
  FL_ASSERT(seat->users > 0, "a seat is left as often as it was taken");
  if (--seat->users > 0) return;
  ledger_.close(seat->queue, now);
  const auto found = seats_of_.find(seat->queue);
  std::erase(found->second, seat);
  if (found->second.empty()) seats_of_.erase(found);
  seats_.erase(QueueName(seat->name));
}

std::vector<QueueName> AdmissionDesk::take_called() {
  std::vector<QueueName> called;
  for (const auto* queue : ledger_.take_called()) {
    const auto found = seats_of_.find(queue);
    if (found == seats_of_.end()) continue;
    for (const auto* seat : found->second) called.push_back(seat->name);
  }
  return called;
}

void AdmissionDesk::tell(const std::vector<QueueName>& called) {
  if (called.empty()) return;
  std::function<void(const QueueName&)> look_again;
  {
    const std::lock_guard lock(mutex_);
    look_again = env_.look_again;
  }
  if (look_again == nullptr) return;
  for (const auto& queue : called) look_again(queue);
}

Permit& Permit::operator=(Permit&& other) noexcept {
  std::swap(desk_, other.desk_);
  std::swap(seat_, other.seat_);
  std::swap(grant_, other.grant_);
  return *this;
}

Permit::~Permit() {
  if (desk_ != nullptr) desk_->cancel(*this);
}

void Permit::start(store::WriteBatch* batch) && {
  std::exchange(desk_, nullptr)->start(*this, batch);
}

// ---- loading -----------------------------------------------------------------------------------

void AdmissionDesk::restore_lease(const QueueName& queue) {
  const std::lock_guard lock(mutex_);
  ledger_.restore_lease(id_of(queue));
}

bool AdmissionDesk::restore_dispatch(const QueueName& queue, uint32_t slot,
                                     const model::DispatchRow& row) {
  const std::lock_guard lock(mutex_);
  if (row.at_ns() + kDispatchCounts < env_.clock->now()) return false;
  ledger_.restore_dispatch(id_of(queue), {slot, row.at_ns(), row.in_namespace(), row.group()});
  return true;
}

void AdmissionDesk::restored() {
  const std::lock_guard lock(mutex_);
  ledger_.restored(env_.clock->now());
}

void AdmissionDesk::detach() {
  const std::lock_guard lock(mutex_);
  env_.look_again = nullptr;
}

void AdmissionDesk::set_policies(std::shared_ptr<const admission::Policies> policies) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    ledger_.set_policies(std::move(policies));
    called = take_called();
  }
  tell(called);
}

// ---- the decision ------------------------------------------------------------------------------

AdmissionDesk::SeatPtr AdmissionDesk::open(const QueueName& queue) {
  const std::lock_guard lock(mutex_);
  return {use(queue), Leave{this}};
}

void AdmissionDesk::close(Seat* seat) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    unuse(seat, env_.clock->now());
    called = take_called();
  }
  tell(called);
}

AdmissionDesk::Decision AdmissionDesk::decide(Seat* seat) {
  auto decision = ledger_.admit(seat->queue, env_.clock->now());
  if (auto* grant = std::get_if<admission::Ledger::Grant>(&decision)) {
    ++seat->users;
    return Permit(shared_from_this(), seat, *grant);
  }
  return std::get<admission::Refusal>(decision);
}

AdmissionDesk::Decision AdmissionDesk::admit(Seat* seat) {
  std::vector<QueueName> called;
  std::optional<Decision> decision;
  {
    const std::lock_guard lock(mutex_);
    decision = decide(seat);
    called = take_called();
  }
  tell(called);
  return std::move(*decision);
}

AdmissionDesk::Decision AdmissionDesk::admit(const QueueName& queue) {
  return admit(open(queue).get());
}

void AdmissionDesk::start(const Permit& permit, store::WriteBatch* batch) {
  const std::lock_guard lock(mutex_);
  if (const auto record = ledger_.start(permit.grant_)) {
    model::DispatchRow row;
    row.set_at_ns(record->at);
    row.set_in_namespace(record->is_in_namespace);
    row.set_group(record->group);
    batch->put(store::keys::dispatch(permit.seat_->owner, permit.seat_->name, record->slot),
               row.SerializeAsString());
  }
  unuse(permit.seat_, env_.clock->now());
}

void AdmissionDesk::cancel(const Permit& permit) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    const TimeNs now = env_.clock->now();
    ledger_.cancel(permit.grant_, now);
    called = take_called();
    if (ledger_.refusal_of(permit.seat_->queue).has_value()) called.push_back(permit.seat_->name);
    unuse(permit.seat_, now);
  }
  tell(called);
}

void AdmissionDesk::release(const QueueName& queue) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    const TimeNs now = env_.clock->now();
    auto* seat = use(queue);
    ledger_.release(seat->queue, now);
    called = take_called();
    // The queue's own cap calls nobody: who waits for it is the queue itself.
    if (ledger_.refusal_of(seat->queue).has_value()) {
      for (const auto* waiting : seats_of_[seat->queue]) called.push_back(waiting->name);
    }
    unuse(seat, now);
  }
  tell(called);
}

void AdmissionDesk::leave(Seat* seat) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    ledger_.leave(seat->queue, env_.clock->now());
    called = take_called();
  }
  tell(called);
}

void AdmissionDesk::sweep() {
  const std::lock_guard lock(mutex_);
  const TimeNs now = env_.clock->now();
  ledger_.sweep(now);
  roster_.forget(now - ledger_.policies().worker_stale_after() * 5);
}

// ---- workers, and what operators see -----------------------------------------------------------

void AdmissionDesk::seen(const QueueName& queue, const std::string& worker) {
  const std::lock_guard lock(mutex_);
  roster_.seen({env_.namespace_name(queue.ns), std::string(shown_queue(queue.name))}, worker,
               kind_of(queue), env_.clock->now());
}

absl::Status AdmissionDesk::put_worker(NamespaceNum ns, const std::string& queue,
                                       const std::string& worker,
                                       const admission::Roster::SlotsSaid& slots) {
  const std::lock_guard lock(mutex_);
  return roster_.put({env_.namespace_name(ns), queue}, worker, slots, env_.clock->now());
}

void AdmissionDesk::hear_of_worker(NamespaceNum ns, const std::string& queue,
                                   const std::string& worker) {
  const std::lock_guard lock(mutex_);
  roster_.heartbeat({env_.namespace_name(ns), queue}, worker, env_.clock->now());
}

void AdmissionDesk::remove_worker(NamespaceNum ns, const std::string& queue,
                                  const std::string& worker) {
  const std::lock_guard lock(mutex_);
  roster_.remove({env_.namespace_name(ns), queue}, worker);
}

void AdmissionDesk::drain_worker(NamespaceNum ns, const std::string& queue,
                                 const std::string& worker, bool is_draining) {
  const std::lock_guard lock(mutex_);
  roster_.set_draining({env_.namespace_name(ns), queue}, worker, is_draining);
}

std::optional<QueryPlace> AdmissionDesk::place_query(NamespaceNum ns, const std::string& queue) {
  const std::lock_guard lock(mutex_);
  QueryLine line(ns, queue);
  const auto found = queries_.find(line);
  const int64_t waiting = found == queries_.end() ? 0 : found->second;
  if (waiting >= ledger_.policies().queries_pending_max()) return std::nullopt;
  queries_[line] = waiting + 1;
  return QueryPlace(shared_from_this(), std::move(line));
}

void AdmissionDesk::leave(const QueryLine& line) {
  const std::lock_guard lock(mutex_);
  const auto found = queries_.find(line);
  FL_ASSERT(found != queries_.end() && found->second > 0, "a query leaves the place that it took");
  if (--found->second == 0) queries_.erase(found);
}

QueryPlace& QueryPlace::operator=(QueryPlace&& other) noexcept {
  std::swap(desk_, other.desk_);
  std::swap(line_, other.line_);
  return *this;
}

QueryPlace::~QueryPlace() {
  if (desk_ != nullptr) desk_->leave(line_);
}

admission::Payload AdmissionDesk::describe(NamespaceNum ns, const std::string& queue,
                                           const Ready& ready) {
  const std::lock_guard lock(mutex_);
  const TimeNs now = env_.clock->now();
  const auto section = [&](admission::TaskKind kind) {
    const auto type =
        kind == admission::TaskKind::kActivity ? model::ACTIVITY_TASK : model::WORKFLOW_TASK;
    auto* seat = use({ns, static_cast<uint8_t>(type), queue});
    admission::TaskFacts facts;
    facts.caps = ledger_.caps_of(seat->queue);
    facts.usage = ledger_.usage(seat->queue, now);
    facts.slots = roster_.slots({env_.namespace_name(ns), queue}, kind,
                                ledger_.policies().worker_stale_after(), now);
    facts.ready = ready[admission::at(kind)];
    facts.is_available = ledger_.is_restored();
    unuse(seat, now);
    return make_section(facts);
  };
  const auto queries = queries_.find(QueryLine(ns, queue));
  return {section(admission::TaskKind::kWorkflow), section(admission::TaskKind::kActivity),
          admission::make_section(ledger_.policies().queries_pending_max(),
                                  queries == queries_.end() ? 0 : queries->second,
                                  ledger_.is_restored())};
}

std::string AdmissionDesk::explain(const QueueName& queue) {
  const std::lock_guard lock(mutex_);
  const auto found = seats_.find(queue);
  if (found == seats_.end()) return "";
  const auto* place = found->second->queue;
  const auto& refusal = ledger_.refusal_of(place);
  if (!refusal.has_value()) return "";
  return to_text(*refusal, ledger_.id_of(place), ledger_.caps_of(place).group, env_.clock->now());
}

}  // namespace fairlead::shard
