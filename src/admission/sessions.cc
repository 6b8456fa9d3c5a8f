#include "admission/sessions.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/assert.h"

namespace fairlead::admission {

std::string_view word_of(SessionRefusal refusal) {
  switch (refusal) {
    case SessionRefusal::kWorkerUnknown:
      return "worker_not_registered";
    case SessionRefusal::kQueueMismatch:
      return "session_queue_mismatch";
    case SessionRefusal::kNotFound:
      return "session_not_found";
    case SessionRefusal::kNotActive:
      return "session_not_active";
    case SessionRefusal::kOwnerMismatch:
      return "session_owner_mismatch";
    case SessionRefusal::kMissing:
      return "session_missing";
    case SessionRefusal::kRequirements:
      return "session_requirements_not_met";
    case SessionRefusal::kTooManySessions:
      return "worker_session_limit_exceeded";
    case SessionRefusal::kOwnedByAnother:
      return "session_owned_by_another_worker";
    case SessionRefusal::kTooManyActivities:
      return "session_activity_limit_exceeded";
    case SessionRefusal::kClosed:
      return "session_closed";
    case SessionRefusal::kNotReacquired:
      return "session_reacquire_disallowed";
    case SessionRefusal::kFull:
      return "resource_exhausted";
  }
  return "";
}

// ---- streams -----------------------------------------------------------------------------------

namespace {

// No id or requirement has such a sign: doors refuse it.
constexpr char kBetween = '\x1f';
const std::string kSessionPrefix = "\x1fsession\x1f";

}  // namespace

std::string session_stream(std::string_view build, const SessionTerms& terms) {
  const char between[] = {kBetween, '\0'};
  std::string stream =
      absl::StrCat(kSessionPrefix, terms.id, between, absl::CHexEscape(std::string(build)), between,
                   terms.lease_s, between, terms.ttl_s, between, terms.activities_max, between,
                   terms.creates ? "c" : "", terms.reacquires ? "r" : "");
  for (const auto& requirement : terms.requirements) absl::StrAppend(&stream, between, requirement);
  return stream;
}

bool is_session_stream(std::string_view stream) { return stream.starts_with(kSessionPrefix); }

std::string shown_stream(const std::string& version) {
  const auto stream = parse_session_stream(version);
  return stream.has_value() ? absl::StrCat("session ", stream->terms.id) : version;
}

std::optional<SessionStream> parse_session_stream(std::string_view stream) {
  if (!is_session_stream(stream)) return std::nullopt;
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(stream.substr(kSessionPrefix.size())), kBetween);
  if (parts.size() < 6) return std::nullopt;
  SessionStream parsed;
  auto& terms = parsed.terms;
  terms.id = parts[0];
  const bool is_read =
      absl::CUnescape(parts[1], &parsed.build) && absl::SimpleAtoi(parts[2], &terms.lease_s) &&
      absl::SimpleAtoi(parts[3], &terms.ttl_s) && absl::SimpleAtoi(parts[4], &terms.activities_max);
  if (!is_read) return std::nullopt;
  terms.creates = parts[5].find('c') != std::string::npos;
  terms.reacquires = parts[5].find('r') != std::string::npos;
  terms.requirements.assign(parts.begin() + 6, parts.end());
  return parsed;
}

// ---- workers -----------------------------------------------------------------------------------

void Sessions::put_worker(NamespaceNum ns, const std::string& worker, SessionWorker facts) {
  workers_[{ns, worker}] = std::move(facts);
}

void Sessions::hear_of_worker(NamespaceNum ns, const std::string& worker, TimeNs now) {
  const auto found = workers_.find({ns, worker});
  if (found != workers_.end()) found->second.heard_ns = std::max(found->second.heard_ns, now);
}

std::vector<std::string> Sessions::remove_worker(NamespaceNum ns, const std::string& worker,
                                                 TimeNs now) {
  std::vector<std::string> orphans;
  const auto held = held_.find({ns, worker});
  if (held != held_.end()) {
    for (const auto& id : held->second) {
      auto& entry = sessions_.at({ns, id});
      if (entry.is_new || entry.session.owner != worker) continue;
      refresh(ns, entry.session, now);
      if (entry.session.status != Session::Status::kActive) continue;
      entry.session.status = Session::Status::kOrphaned;
      entry.session.cause = Session::Cause::kWorker;
      entry.session.changed_ns = now;
      orphans.push_back(id);
    }
  }
  workers_.erase({ns, worker});
  return orphans;
}

const SessionWorker* Sessions::find_worker(NamespaceNum ns, const std::string& worker) const {
  const auto found = workers_.find({ns, worker});
  return found == workers_.end() ? nullptr : &found->second;
}

int64_t Sessions::free_slots(NamespaceNum ns, const std::string& worker, TimeNs now) {
  const auto* facts = find_worker(ns, worker);
  if (facts == nullptr) return 0;
  int64_t used = 0;
  if (const auto held = held_.find({ns, worker}); held != held_.end()) {
    for (const auto& id : held->second) {
      auto& entry = sessions_.at({ns, id});
      refresh(ns, entry.session, now);
      const bool is_owned = !entry.is_new && entry.session.owner == worker &&
                            entry.session.status == Session::Status::kActive;
      if (is_owned || entry.reserved == worker) ++used;
    }
  }
  return std::max<int64_t>(0, facts->sessions_max - used);
}

// ---- sessions ----------------------------------------------------------------------------------

Sessions::Entry* Sessions::find_entry(NamespaceNum ns, const std::string& id) {
  const auto found = sessions_.find({ns, id});
  return found == sessions_.end() ? nullptr : &found->second;
}

// When a session that nobody renews is lost, as far as is known now.
TimeNs Sessions::lost_at(NamespaceNum ns, const Session& session) const {
  const auto* owner = find_worker(ns, session.owner);
  const TimeNs stale = owner == nullptr ? 0 : add_saturated(owner->heard_ns, owner->stale_after);
  return std::min({session.lease_ends, session.ttl_ends, stale});
}

void Sessions::refresh(NamespaceNum ns, Session& session, TimeNs now) const {
  if (session.status == Session::Status::kClosed) return;
  // A lost session whose lifetime is over cannot be had again.
  if (session.ttl_ends <= now) {
    if (session.cause == Session::Cause::kTtl) return;
    session.status = Session::Status::kExpired;
    session.cause = Session::Cause::kTtl;
    session.changed_ns = session.ttl_ends;
    return;
  }
  if (session.status != Session::Status::kActive || lost_at(ns, session) > now) return;
  const bool is_lease = session.lease_ends <= now;
  session.status = is_lease ? Session::Status::kExpired : Session::Status::kOrphaned;
  session.cause = is_lease ? Session::Cause::kLease : Session::Cause::kWorker;
  session.changed_ns = is_lease ? session.lease_ends : now;
}

Sessions::Answer Sessions::judge(NamespaceNum ns, const SessionTerms& terms,
                                 const std::string& worker, bool is_task, TimeNs now) {
  const auto refuse = [](SessionRefusal why, TimeNs look_again_at = kNever) {
    Answer answer;
    answer.refusal = why;
    answer.look_again_at = look_again_at;
    return answer;
  };
  const auto* facts = find_worker(ns, worker);
  if (facts == nullptr) return refuse(SessionRefusal::kWorkerUnknown);
  std::vector<std::string> missing;
  for (const auto& requirement : terms.requirements) {
    if (!facts->capabilities.contains(requirement)) missing.push_back(requirement);
  }
  if (!missing.empty()) {
    auto answer = refuse(SessionRefusal::kRequirements);
    answer.missing = std::move(missing);
    return answer;
  }
  Answer granted;
  auto* entry = find_entry(ns, terms.id);
  if (entry == nullptr) {
    if (!terms.creates) return refuse(SessionRefusal::kMissing);
    if (free_slots(ns, worker, now) == 0) return refuse(SessionRefusal::kTooManySessions);
    if (sessions_.size() >= max_) return refuse(SessionRefusal::kFull);
    granted.outcome = Outcome::kCreated;
    return granted;
  }
  auto& session = entry->session;
  if (!entry->is_new) refresh(ns, session, now);
  if (!entry->reserved.empty()) {
    if (entry->reserved != worker) return refuse(SessionRefusal::kOwnedByAnother);
    const bool is_full = is_task && session.running >= terms.activities_max;
    return is_full ? refuse(SessionRefusal::kTooManyActivities) : granted;
  }
  if (session.status == Session::Status::kActive) {
    if (session.owner != worker) {
      return refuse(SessionRefusal::kOwnedByAnother, lost_at(ns, session));
    }
    if (is_task && session.running >= session.terms.activities_max) {
      return refuse(SessionRefusal::kTooManyActivities);
    }
    return granted;
  }
  if (session.status == Session::Status::kClosed) return refuse(SessionRefusal::kClosed);
  if (session.cause == Session::Cause::kTtl || !session.terms.reacquires || !terms.reacquires) {
    return refuse(SessionRefusal::kNotReacquired);
  }
  if (free_slots(ns, worker, now) == 0) return refuse(SessionRefusal::kTooManySessions);
  // What the lost worker had is not over until its own lease is.
  if (is_task && session.running >= terms.activities_max) {
    return refuse(SessionRefusal::kTooManyActivities);
  }
  granted.outcome = Outcome::kReacquired;
  return granted;
}

Sessions::Answer Sessions::look(NamespaceNum ns, const SessionTerms& terms,
                                const std::string& worker, TimeNs now) {
  return judge(ns, terms, worker, true, now);
}

Sessions::Answer Sessions::claim(NamespaceNum ns, const SessionTerms& terms,
                                 const std::string& worker, TimeNs now) {
  auto answer = judge(ns, terms, worker, true, now);
  if (answer.refusal.has_value()) return answer;
  auto& entry = sessions_[{ns, terms.id}];
  if (answer.outcome == Outcome::kCreated) {
    entry.is_new = true;
    entry.session.terms = terms;
  }
  if (answer.outcome != Outcome::kReused) {
    entry.reserved = worker;
    held_[{ns, worker}].insert(terms.id);
  }
  ++entry.session.running;
  ++entry.on_the_way;
  return answer;
}

void Sessions::set_owner(NamespaceNum ns, Session& session, const std::string& worker) {
  if (session.owner != worker) {
    if (const auto held = held_.find({ns, session.owner}); held != held_.end()) {
      held->second.erase(session.terms.id);
      if (held->second.empty()) held_.erase(held);
    }
  }
  session.owner = worker;
  held_[{ns, worker}].insert(session.terms.id);
}

// The worker has it from now on, or goes on with it. A lifetime begins once.
void Sessions::acquire(NamespaceNum ns, Entry& entry, const SessionTerms& terms,
                       const std::string& worker, TimeNs now) {
  auto& session = entry.session;
  session.terms = terms;
  set_owner(ns, session, worker);
  if (entry.is_new) {
    session.created_ns = now;
    session.ttl_ends = add_saturated(now, terms.ttl_s * kSecond);
  }
  entry.is_new = false;
  entry.reserved.clear();
  if (const auto* facts = find_worker(ns, worker)) session.queue = facts->queue;
  session.status = Session::Status::kActive;
  session.cause = Session::Cause::kNone;
  session.heard_ns = session.changed_ns = now;
  session.lease_ends = add_saturated(now, terms.lease_s * kSecond);
}

const Session& Sessions::start(NamespaceNum ns, const SessionTerms& terms,
                               const std::string& worker, TimeNs now) {
  auto* entry = find_entry(ns, terms.id);
  FL_ASSERT(entry != nullptr && entry->on_the_way > 0, "what starts was claimed");
  --entry->on_the_way;
  // It may have been closed, or lost, since it was claimed: the task goes all the same.
  const bool is_held =
      entry->reserved == worker ||
      (entry->session.owner == worker && entry->session.status == Session::Status::kActive);
  if (is_held) acquire(ns, *entry, terms, worker, now);
  return entry->session;
}

void Sessions::cancel(NamespaceNum ns, const std::string& id) {
  auto* entry = find_entry(ns, id);
  FL_ASSERT(entry != nullptr && entry->on_the_way > 0, "what is given back was claimed");
  --entry->on_the_way;
  --entry->session.running;
  if (entry->on_the_way > 0 || entry->reserved.empty()) return;
  const auto held = held_.find({ns, entry->reserved});
  if (entry->reserved != entry->session.owner && held != held_.end()) {
    held->second.erase(id);
    if (held->second.empty()) held_.erase(held);
  }
  entry->reserved.clear();
  if (entry->is_new) sessions_.erase({ns, id});
}

void Sessions::release(NamespaceNum ns, const std::string& id) {
  auto* entry = find_entry(ns, id);
  if (entry != nullptr && entry->session.running > entry->on_the_way) --entry->session.running;
}

Sessions::Answer Sessions::create(NamespaceNum ns, const SessionTerms& terms,
                                  const std::string& worker, TimeNs now) {
  auto answer = judge(ns, terms, worker, false, now);
  if (answer.refusal.has_value()) return answer;
  auto& entry = sessions_[{ns, terms.id}];
  if (answer.outcome == Outcome::kCreated) entry.is_new = true;
  if (entry.is_new) answer.outcome = Outcome::kCreated;
  acquire(ns, entry, terms, worker, now);
  return answer;
}

Sessions::Answer Sessions::renew(NamespaceNum ns, const std::string& id, const std::string& worker,
                                 std::optional<int64_t> lease_s, TimeNs now) {
  Answer answer;
  auto* entry = find_entry(ns, id);
  if (entry == nullptr || entry->is_new) {
    answer.refusal = SessionRefusal::kNotFound;
    return answer;
  }
  auto& session = entry->session;
  refresh(ns, session, now);
  if (session.status != Session::Status::kActive) {
    answer.refusal = SessionRefusal::kNotActive;
  } else if (session.owner != worker) {
    answer.refusal = SessionRefusal::kOwnerMismatch;
  } else {
    session.heard_ns = session.changed_ns = now;
    session.lease_ends = add_saturated(now, lease_s.value_or(session.terms.lease_s) * kSecond);
  }
  return answer;
}

Sessions::Closing Sessions::close(NamespaceNum ns, const std::string& id, const std::string& worker,
                                  TimeNs now) {
  auto* entry = find_entry(ns, id);
  if (entry == nullptr || entry->is_new) return {SessionRefusal::kNotFound};
  auto& session = entry->session;
  if (session.owner != worker) return {SessionRefusal::kOwnerMismatch};
  if (session.status == Session::Status::kClosed) return {std::nullopt, true};
  session.status = Session::Status::kClosed;
  session.cause = Session::Cause::kNone;
  session.closed_ns = session.changed_ns = now;
  return {};
}

const Session* Sessions::find(NamespaceNum ns, const std::string& id, TimeNs now) {
  auto* entry = find_entry(ns, id);
  if (entry == nullptr || entry->is_new) return nullptr;
  refresh(ns, entry->session, now);
  return &entry->session;
}

// ---- memory ------------------------------------------------------------------------------------

void Sessions::restore(NamespaceNum ns, Session session) {
  held_[{ns, session.owner}].insert(session.terms.id);
  session.running = 0;
  const Key key(ns, session.terms.id);
  sessions_[key].session = std::move(session);
}

void Sessions::restore_running(NamespaceNum ns, const std::string& id) {
  if (auto* entry = find_entry(ns, id)) ++entry->session.running;
}

std::vector<Sessions::Key> Sessions::forget(TimeNs now) {
  std::vector<Key> gone;
  for (auto& [key, entry] : sessions_) {
    if (entry.is_new || !entry.reserved.empty() || entry.session.running > 0) continue;
    refresh(key.first, entry.session, now);
    const auto& session = entry.session;
    const TimeNs over =
        session.status == Session::Status::kClosed ? session.closed_ns : session.ttl_ends;
    if (session.status != Session::Status::kActive && add_saturated(over, kRemembered) <= now) {
      gone.push_back(key);
    }
  }
  for (const auto& key : gone) {
    const auto found = sessions_.find(key);
    const auto held = held_.find({key.first, found->second.session.owner});
    if (held != held_.end()) {
      held->second.erase(key.second);
      if (held->second.empty()) held_.erase(held);
    }
    sessions_.erase(found);
  }
  return gone;
}

std::vector<Sessions::Key> Sessions::forget_namespace(NamespaceNum ns) {
  std::vector<Key> gone;
  for (auto at = sessions_.lower_bound(Key(ns, "")); at != sessions_.end() && at->first.first == ns;
       ++at) {
    if (at->second.on_the_way == 0) gone.push_back(at->first);
  }
  for (const auto& key : gone) sessions_.erase(key);
  for (auto at = held_.lower_bound(Key(ns, "")); at != held_.end() && at->first.first == ns;) {
    absl::erase_if(at->second, [&](const std::string& id) {
      return !sessions_.contains({ns, id});
    });
    at = at->second.empty() ? held_.erase(at) : std::next(at);
  }
  for (auto at = workers_.lower_bound(Key(ns, ""));
       at != workers_.end() && at->first.first == ns;) {
    at = workers_.erase(at);
  }
  return gone;
}

}  // namespace fairlead::admission
