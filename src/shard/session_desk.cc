#include "shard/session_desk.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

model::SessionTerms terms_row(const admission::SessionTerms& terms) {
  model::SessionTerms row;
  row.set_session_id(terms.id);
  for (const auto& requirement : terms.requirements) row.add_requirements(requirement);
  row.set_lease_s(terms.lease_s);
  row.set_ttl_s(terms.ttl_s);
  row.set_activities_max(terms.activities_max);
  row.set_creates(terms.creates);
  row.set_reacquires(terms.reacquires);
  return row;
}

// DO NOT CHANGE what a field means: it is on people's disks.
std::string row_of(const admission::Session& session) {
  model::SessionRow row;
  *row.mutable_terms() = terms_row(session.terms);
  row.set_queue(session.queue);
  row.set_owner(session.owner);
  row.set_status(static_cast<model::SessionRow::Status>(session.status));
  row.set_cause(static_cast<model::SessionRow::Cause>(session.cause));
  row.set_created_ns(session.created_ns);
  row.set_heard_ns(session.heard_ns);
  row.set_changed_ns(session.changed_ns);
  row.set_closed_ns(session.closed_ns);
  row.set_lease_ends_ns(session.lease_ends);
  row.set_ttl_ends_ns(session.ttl_ends);
  return row.SerializeAsString();
}

admission::Session session_of(const model::SessionRow& row) {
  admission::Session session;
  session.terms = terms_from(row.terms());
  session.queue = row.queue();
  session.owner = row.owner();
  session.status = static_cast<admission::Session::Status>(row.status());
  session.cause = static_cast<admission::Session::Cause>(row.cause());
  session.created_ns = row.created_ns();
  session.heard_ns = row.heard_ns();
  session.changed_ns = row.changed_ns();
  session.closed_ns = row.closed_ns();
  session.lease_ends = row.lease_ends_ns();
  session.ttl_ends = row.ttl_ends_ns();
  return session;
}

}  // namespace

admission::SessionTerms terms_from(const model::SessionTerms& row) {
  admission::SessionTerms terms;
  terms.id = row.session_id();
  terms.requirements.assign(row.requirements().begin(), row.requirements().end());
  terms.lease_s = row.lease_s();
  terms.ttl_s = row.ttl_s();
  terms.activities_max = row.activities_max();
  terms.creates = row.creates();
  terms.reacquires = row.reacquires();
  return terms;
}

SessionHold& SessionHold::operator=(SessionHold&& other) noexcept {
  std::swap(desk_, other.desk_);
  std::swap(ns_, other.ns_);
  std::swap(terms_, other.terms_);
  std::swap(worker_, other.worker_);
  return *this;
}

SessionHold::~SessionHold() {
  if (desk_ != nullptr) desk_->cancel(*this);
}

void SessionHold::start(const SessionDesk::Lock& lock, store::WriteBatch* batch) && {
  FL_ASSERT(lock.owns_lock(), "rows of a session are written in the order of the decisions");
  desk_->start(*this, batch);
  desk_ = nullptr;
}

// ---- loading -----------------------------------------------------------------------------------

absl::Status SessionDesk::load(const store::Store& store) {
  const std::lock_guard lock(mutex_);
  const auto range = store::keys::sessions();
  return store.scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
    model::SessionRow row;
    FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
              "a session's row is one");
    sessions_.restore(store::keys::parse_session(key).ns, session_of(row));
    return true;
  });
}

void SessionDesk::restore_running(NamespaceNum ns, const std::string& id) {
  const std::lock_guard lock(mutex_);
  sessions_.restore_running(ns, id);
}

void SessionDesk::detach() {
  const std::lock_guard lock(mutex_);
  env_.look_again = nullptr;
}

void SessionDesk::write_row(NamespaceNum ns, const std::string& id) {
  store::WriteBatch batch;
  batch.put(store::keys::session(ns, id), row_of(*sessions_.find(ns, id, env_.clock->now())));
  env_.commits->write(batch);
}

// ---- who waits ---------------------------------------------------------------------------------

// One that is not noted for lack of room is served when it is polled again.
void SessionDesk::note_refused(const Key& session, const QueueName& queue) {
  if (refused_.size() >= kRefusedMax && !refused_.contains(session)) return;
  auto& queues = refused_[session];
  if (std::find(queues.begin(), queues.end(), queue) == queues.end()) queues.push_back(queue);
}

std::vector<QueueName> SessionDesk::take_refused(const Key& session) {
  const auto found = refused_.find(session);
  if (found == refused_.end()) return {};
  auto queues = std::move(found->second);
  refused_.erase(found);
  return queues;
}

void SessionDesk::tell(const std::vector<QueueName>& queues) {
  if (queues.empty()) return;
  std::function<void(const QueueName&)> look_again;
  {
    const std::lock_guard lock(mutex_);
    look_again = env_.look_again;
  }
  if (look_again == nullptr) return;
  for (const auto& queue : queues) look_again(queue);
}

// ---- workers -----------------------------------------------------------------------------------

void SessionDesk::put_worker(NamespaceNum ns, const std::string& worker,
                             admission::SessionWorker facts) {
  const std::lock_guard lock(mutex_);
  sessions_.put_worker(ns, worker, std::move(facts));
}

void SessionDesk::hear_of_worker(NamespaceNum ns, const std::string& worker) {
  const std::lock_guard lock(mutex_);
  sessions_.hear_of_worker(ns, worker, env_.clock->now());
}

void SessionDesk::remove_worker(NamespaceNum ns, const std::string& worker) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& id : sessions_.remove_worker(ns, worker, env_.clock->now())) {
      write_row(ns, id);
      for (auto& queue : take_refused({ns, id})) called.push_back(std::move(queue));
    }
  }
  tell(called);
}

int64_t SessionDesk::free_slots(NamespaceNum ns, const std::string& worker) {
  const std::lock_guard lock(mutex_);
  return sessions_.free_slots(ns, worker, env_.clock->now());
}

// ---- queues ------------------------------------------------------------------------------------

SessionDesk::Answer SessionDesk::look(const QueueName& queue, const std::string& stream,
                                      const std::string& worker) {
  const auto asked = admission::parse_session_stream(stream);
  Answer answer;
  answer.refusal = admission::SessionRefusal::kRequirements;
  if (!asked.has_value()) return answer;
  const std::lock_guard lock(mutex_);
  const auto* facts = sessions_.find_worker(queue.ns, worker);
  if (facts != nullptr && facts->build != asked->build) return answer;
  answer = sessions_.look(queue.ns, asked->terms, worker, env_.clock->now());
  if (!answer.refusal.has_value()) return answer;
  note_refused({queue.ns, asked->terms.id}, queue);
  if (answer.refusal == admission::SessionRefusal::kTooManySessions) {
    note_refused({queue.ns, ""}, queue);
  }
  return answer;
}

std::optional<SessionHold> SessionDesk::claim(const QueueName& queue, const std::string& stream,
                                              const std::string& worker) {
  auto asked = admission::parse_session_stream(stream);
  if (!asked.has_value()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto* facts = sessions_.find_worker(queue.ns, worker);
  if (facts == nullptr || facts->build != asked->build) return std::nullopt;
  const auto answer = sessions_.claim(queue.ns, asked->terms, worker, env_.clock->now());
  if (answer.refusal.has_value()) return std::nullopt;
  return SessionHold(shared_from_this(), queue.ns, std::move(asked->terms), worker);
}

const admission::Session& SessionDesk::start(const SessionHold& hold, store::WriteBatch* batch) {
  const auto& session = sessions_.start(hold.ns_, hold.terms_, hold.worker_, env_.clock->now());
  if (session.created_ns != 0) {
    batch->put(store::keys::session(hold.ns_, hold.terms_.id), row_of(session));
  }
  return session;
}

void SessionDesk::cancel(const SessionHold& hold) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    sessions_.cancel(hold.ns_, hold.terms_.id);
    called = take_refused({hold.ns_, hold.terms_.id});
  }
  tell(called);
}

void SessionDesk::release(NamespaceNum ns, const std::string& id) {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    sessions_.release(ns, id);
    called = take_refused({ns, id});
  }
  tell(called);
}

// ---- what workers say --------------------------------------------------------------------------

SessionDesk::Answer SessionDesk::create(NamespaceNum ns, const admission::SessionTerms& terms,
                                        const std::string& worker) {
  Answer answer;
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    answer = sessions_.create(ns, terms, worker, env_.clock->now());
    if (answer.refusal.has_value()) return answer;
    write_row(ns, terms.id);
    called = take_refused({ns, terms.id});
  }
  tell(called);
  return answer;
}

SessionDesk::Answer SessionDesk::renew(NamespaceNum ns, const std::string& id,
                                       const std::string& worker, std::optional<int64_t> lease_s) {
  const std::lock_guard lock(mutex_);
  auto answer = sessions_.renew(ns, id, worker, lease_s, env_.clock->now());
  if (!answer.refusal.has_value()) write_row(ns, id);
  return answer;
}

void SessionDesk::renew(const Lock& lock, NamespaceNum ns, const std::string& id,
                        const std::string& worker, store::WriteBatch* batch) {
  FL_ASSERT(lock.owns_lock(), "rows of a session are written in the order of the decisions");
  const TimeNs now = env_.clock->now();
  if (sessions_.renew(ns, id, worker, std::nullopt, now).refusal.has_value()) return;
  batch->put(store::keys::session(ns, id), row_of(*sessions_.find(ns, id, now)));
}

SessionDesk::Closing SessionDesk::close(NamespaceNum ns, const std::string& id,
                                        const std::string& worker) {
  Closing closing;
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    closing = sessions_.close(ns, id, worker, env_.clock->now());
    if (closing.refusal.has_value() || closing.was_closed) return closing;
    write_row(ns, id);
    // Its worker has a slot to spare.
    called = take_refused({ns, ""});
  }
  tell(called);
  return closing;
}

std::optional<admission::Session> SessionDesk::find(NamespaceNum ns, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto* session = sessions_.find(ns, id, env_.clock->now());
  if (session == nullptr) return std::nullopt;
  return *session;
}

void SessionDesk::forget_namespace(NamespaceNum ns) {
  const std::lock_guard lock(mutex_);
  store::WriteBatch batch;
  for (const auto& key : sessions_.forget_namespace(ns)) {
    batch.erase(store::keys::session(key.first, key.second));
  }
  if (!batch.empty()) env_.commits->write(batch);
}

void SessionDesk::sweep() {
  std::vector<QueueName> called;
  {
    const std::lock_guard lock(mutex_);
    store::WriteBatch batch;
    for (const auto& key : sessions_.forget(env_.clock->now())) {
      batch.erase(store::keys::session(key.first, key.second));
      for (auto& queue : take_refused(key)) called.push_back(std::move(queue));
    }
    if (!batch.empty()) env_.commits->write(batch);
  }
  tell(called);
}

}  // namespace fairlead::shard
