// What runs tell each other: starting children, hearing of their end, signals and cancel requests.
//
//   sender's step        batch: … + letter row       the row is there until the outcome is
//   receiver's step      batch: what the letter asks for; a letter that comes again changes nothing
//   sender's next step   batch: the outcome's event, − letter row
//
// After a crash every row is delivered again. All shards write to one log, so whatever a receiver
// has kept, the letter that caused it was kept before.

#include "base/assert.h"
#include "base/error.h"
#include "history/cancellation.h"
#include "history/children.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

constexpr size_t kLettersPerTurn = 256;
constexpr DurationNs kRetryAfter = 100 * kMillisecond;
constexpr char kByParent[] = "by parent close policy";
constexpr char kBySchedule[] = "by overlap policy of its schedule";

// The API's numbers for why something could not be done to another run.
constexpr int kAlreadyExists = 1;
constexpr int kNotFound = 1;
constexpr int kSignalLimit = 3;
// The API's WorkflowIdReusePolicy.
constexpr int kFailedOnly = 2;
constexpr int kReject = 3;
constexpr int kTerminateIfRunning = 4;

bool is_transient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

model::Origin origin_of(const model::Letter::External& body) {
  model::Origin origin;
  *origin.mutable_run() = body.from();
  origin.set_initiated_id(body.initiated_id());
  return origin;
}

// The run that a letter asks for, as a child of another or because of a schedule.
StartRequest start_request(const model::Letter& letter, const model::ChildInitiated& child) {
  StartRequest start;
  start.ns = NamespaceNum(letter.namespace_num());
  start.namespace_id = child.namespace_id();
  start.workflow_id = child.workflow_id();
  start.workflow_type = child.workflow_type();
  start.task_queue = child.task_queue();
  start.request_id = letter.request_id();
  start.run_id = letter.to().run_id();
  start.execution_timeout = child.execution_timeout_ns();
  start.run_timeout = child.run_timeout_ns();
  start.task_timeout = child.task_timeout_ns();
  start.priority = child.priority();
  if (child.has_retry_policy()) start.retry_policy = child.retry_policy();
  start.cron_schedule = child.cron_schedule();
  if (letter.has_start_child()) {
    start.parent = letter.start_child().parent();
    start.root = letter.start_child().root();
    start.version = letter.start_child().version();
  } else {
    start.schedule = letter.start_scheduled().schedule();
  }
  for (const auto& [key, value] : child.memo()) start.memo.emplace_back(key, value);
  for (const auto& [key, value] : child.search_attributes()) {
    start.search_attributes.emplace_back(key, value);
  }
  start.user_metadata = child.user_metadata();
  start.flavour = child.flavour();
  start.door = child.start_door();
  start.envelope = child.start_envelope();
  if (child.reuse_policy() == kFailedOnly) start.reuse = ReusePolicy::kAllowDuplicateFailedOnly;
  if (child.reuse_policy() == kReject) start.reuse = ReusePolicy::kRejectDuplicate;
  if (child.reuse_policy() == kTerminateIfRunning) {
    start.conflict = ConflictPolicy::kTerminateExisting;
  }
  return start;
}

}  // namespace

void Shard::post_letters(Step& step, Step::Part& part) {
  for (const auto& posted : part.tx.posted()) {
    auto key = store::keys::letter(id_, part.entry->key, posted.event_id);
    if (!posted.letter.has_value()) {
      step.batch.erase(std::move(key));
      continue;
    }
    auto letter = *posted.letter;
    // Promised before it is asked for: a request that comes again finds the child by its run id.
    if (letter.has_start_child() && letter.to().run_id().empty()) {
      letter.mutable_to()->set_run_id(make_uuid(random_, part.tx.now));
    }
    step.batch.put(std::move(key), letter.SerializeAsString());
    step.after_write.push_back(
        [this, sender = Sender{id_, part.entry->key, posted.event_id},
         letter = std::move(letter)]() mutable { deliver(sender, std::move(letter)); });
  }
}

void Shard::deliver(const Sender& sender, model::Letter letter) {
  const NamespaceNum ns(letter.namespace_num());
  const ShardId id =
      letter.has_scheduled_closed()
          ? world_.peers->shard_of_schedule(ns, letter.scheduled_closed().schedule().schedule_id())
          : world_.peers->shard_of_workflow(ns, letter.to().workflow_id());
  Shard& target = world_.peers->shard(id);
  target.executor().post([&target, sender, letter = std::move(letter)]() mutable {
    target.receive(sender, std::move(letter));
    target.schedule_tick();
  });
}

void Shard::deliver_later(const Sender& sender, model::Letter letter) {
  alarms_.set(now() + kRetryAfter, [this, sender, letter = std::move(letter)]() mutable {
    if (!is_closed_) deliver(sender, std::move(letter));
  });
  schedule_tick();
}

// Delivers again what a crash has left, a part at a time.
void Shard::resume_letters(std::string from) {
  if (is_closed_) return;
  const auto range = store::keys::letters(id_);
  size_t count = 0;
  std::string rest;
  const auto status =
      world_.store->scan(from, range.end, [&](std::string_view key, std::string_view value) {
        if (count++ == kLettersPerTurn) {
          rest = key;
          return false;
        }
        model::Letter letter;
        FL_ASSERT(letter.ParseFromArray(value.data(), static_cast<int>(value.size())),
                  "a letter's row is a letter");
        const auto row = store::keys::parse_letter(key);
        deliver({id_, row.run, row.event_id}, std::move(letter));
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  if (!rest.empty()) {
    executor_->post([this, rest = std::move(rest)] { resume_letters(rest); });
  }
}

void Shard::receive(const Sender& sender, model::Letter letter) {
  if (is_closed_) return;
  switch (letter.body_case()) {
    case model::Letter::kStartChild:
      return receive_start_child(sender, letter);
    case model::Letter::kChildClosed:
      return receive_child_closed(sender, letter);
    case model::Letter::kParentClosed:
      return receive_parent_closed(sender, letter);
    case model::Letter::kStartScheduled:
      return receive_start(sender, letter);
    case model::Letter::kStopScheduled:
      return receive_stop(sender, letter);
    case model::Letter::kScheduledClosed:
      return receive_scheduled_closed(sender, letter);
    default:
      return receive_external(sender, letter);
  }
}

void Shard::answer_letter(const Sender& sender, const model::Letter& letter, Outcome outcome) {
  Shard& home = world_.peers->shard(sender.shard);
  home.executor().post([&home, sender, letter, outcome = std::move(outcome)] {
    home.settle(sender, letter, outcome);
    home.schedule_tick();
  });
}

// The run that was promised may be there already.
void Shard::receive_start(const Sender& sender, const model::Letter& letter) {
  if (runs_.find(uuid_to_bytes(letter.to().run_id())) != nullptr) {
    answer_letter(sender, letter, {absl::OkStatus(), letter.to().run_id()});
    return;
  }
  const auto& run =
      letter.has_start_child() ? letter.start_child().child() : letter.start_scheduled().start();
  start_workflow(
      start_request(letter, run), [this, sender, letter](absl::StatusOr<StartResult> result) {
        answer_letter(sender, letter, {result.status(), result.ok() ? result->run_id : ""});
      });
}

void Shard::receive_start_child(const Sender& sender, const model::Letter& letter) {
  const auto& asked = letter.start_child();
  if (!asked.author_run_id().empty()) {
    // The parent was reset. Before that it may have started the child and not lived to hear of it.
    const auto current =
        current_run(NamespaceNum(letter.namespace_num()), letter.to().workflow_id());
    const auto* entry = current.ok() ? runs_.find(*current) : nullptr;
    if (entry != nullptr && entry->run.is_open() &&
        history::is_child_of(entry->run.state, asked.parent().run(), letter.former_run_ids(),
                             asked.parent().initiated_id())) {
      answer_letter(sender, letter, {absl::OkStatus(), entry->run.state.first_run_id()});
      return;
    }
  }
  receive_start(sender, letter);
}

void Shard::receive_child_closed(const Sender& sender, const model::Letter& letter) {
  const RunRef parent{NamespaceNum(letter.namespace_num()), letter.to().workflow_id(),
                      letter.to().run_id(), letter.flavour()};
  with_run(
      heir_of(parent, letter.child_closed().initiated_id()),
      [this, parent, sender, letter](RunEntry& entry) {
        if (!entry.run.is_open()) {
          // Perhaps a reset was under way and has ended it.
          const std::string closed = entry.run.state.run_id();
          const auto heir = heir_of(parent, letter.child_closed().initiated_id()).run_id;
          if (heir != parent.run_id && heir != closed) return receive_child_closed(sender, letter);
          answer_letter(sender, letter, {});
          return;
        }
        auto step = begin(entry);
        history::child_closed(step->parts[0]->tx, letter.child_closed());
        reply_after(*step, [this, sender, letter] { answer_letter(sender, letter, {}); });
        finish(std::move(step));
      },
      [this, sender, letter](const absl::Status&) { answer_letter(sender, letter, {}); });
}

void Shard::receive_parent_closed(const Sender& sender, const model::Letter& letter) {
  with_run(
      {NamespaceNum(letter.namespace_num()), letter.to().workflow_id(), "", letter.flavour()},
      [this, sender, letter](RunEntry& entry) {
        const auto& body = letter.parent_closed();
        const bool asks = body.policy() == model::PARENT_CLOSE_ASK_TO_STOP;
        const bool is_meant = entry.run.is_open() &&
                              history::is_child_of(entry.run.state, body.parent(),
                                                   letter.former_run_ids(), body.initiated_id());
        if (!is_meant || (asks && history::is_asked_to_stop(entry.run.state))) {
          answer_letter(sender, letter, {});
          return;
        }
        if (asks) {
          auto step = begin(entry);
          auto& tx = step->parts[0]->tx;
          auto context = body.cancellation();
          auto* link = context.add_lineage();
          link->set_request_id(make_uuid(random_, tx.now));
          link->set_workflow_id(tx.state().workflow_id());
          link->set_run_id(tx.state().run_id());
          history::ask_to_stop(tx, std::move(context));
          reply_after(*step, [this, sender, letter] { answer_letter(sender, letter, {}); });
          finish(std::move(step));
          return;
        }
        model::Origin origin;
        *origin.mutable_run() = body.parent();
        end_asked(entry, body.policy() == model::PARENT_CLOSE_REQUEST_CANCEL, kByParent, origin,
                  [this, sender, letter] { answer_letter(sender, letter, {}); });
      },
      [this, sender, letter](const absl::Status&) { answer_letter(sender, letter, {}); });
}

void Shard::end_asked(RunEntry& entry, bool is_cancel, const std::string& reason,
                      const model::Origin& origin, Job then) {
  auto step = begin(entry);
  auto& tx = step->parts[0]->tx;
  if (is_cancel && history::is_durable(tx.state())) {
    model::Event closing;
    closing.set_kind(model::WORKFLOW_CANCELED);
    closing.mutable_workflow_closed()->set_reason(reason);
    history::terminate_run(tx, std::move(closing));
  } else if (is_cancel) {
    history::request_cancel(tx, "", "", &origin);
  } else {
    history::terminate_by_server(tx, reason);
  }
  reply_after(*step, std::move(then));
  finish(std::move(step));
}

// A schedule wants the runs no longer that it has started before.
void Shard::receive_stop(const Sender& sender, const model::Letter& letter) {
  with_run(
      {NamespaceNum(letter.namespace_num()), letter.to().workflow_id(), "", letter.flavour()},
      [this, sender, letter](RunEntry& entry) {
        const auto& body = letter.stop_scheduled();
        const auto& state = entry.run.state;
        if (!entry.run.is_open() || state.first_run_id() != body.first_run_id()) {
          answer_letter(sender, letter, {});
          return;
        }
        end_asked(entry, body.kind() == model::WORKFLOW_CANCELED && !state.cancel_requested(),
                  kBySchedule, {}, [this, sender, letter] { answer_letter(sender, letter, {}); });
      },
      [this, sender, letter](const absl::Status&) { answer_letter(sender, letter, {}); });
}

void Shard::receive_scheduled_closed(const Sender& sender, const model::Letter& letter) {
  schedules_.close_run(letter.scheduled_closed().schedule(),
                       [this, sender, letter] { answer_letter(sender, letter, {}); });
}

void Shard::receive_external(const Sender& sender, const model::Letter& letter) {
  const auto& body = letter.external();
  const RunRef run{NamespaceNum(letter.namespace_num()), letter.to().workflow_id(),
                   letter.to().run_id()};
  if (run.workflow_id == body.from().workflow_id() &&
      (run.run_id.empty() || run.run_id == body.from().run_id())) {
    answer_letter(sender, letter, {errors::workflow_not_found(run.workflow_id)});
    return;
  }
  with_run(
      run,
      [this, run, sender, letter](RunEntry& entry) {
        const auto& asked = letter.external();
        if (asked.children_only() &&
            !history::is_child_of(entry.run.state, asked.from(), letter.former_run_ids(), 0)) {
          answer_letter(sender, letter, {errors::workflow_not_found(run.workflow_id)});
          return;
        }
        const auto answer = [this, sender, letter](const auto& done) {
          answer_letter(sender, letter, {done.status()});
        };
        const RunRef exactly{run.ns, run.workflow_id, entry.run.state.run_id()};
        if (asked.kind() == model::SIGNAL_EXTERNAL_INITIATED) {
          signal_workflow({exactly, letter.request_id(), asked.door(), "", origin_of(asked)},
                          answer);
        } else {
          cancel_workflow({exactly, "", asked.door(), "", origin_of(asked)}, answer);
        }
      },
      [this, sender, letter](const absl::Status& status) {
        answer_letter(sender, letter, {status});
      });
}

// The sender hears what became of its letter.
void Shard::settle(const Sender& sender, const model::Letter& letter, const Outcome& outcome) {
  if (is_closed_) return;
  if (is_transient(outcome.status)) {
    deliver_later(sender, letter);
    return;
  }
  const auto forget = [this, sender] {
    store::WriteBatch batch;
    batch.erase(store::keys::letter(id_, sender.run, sender.event_id));
    world_.commits->write(batch);
  };
  if (letter.has_start_scheduled()) {
    const auto& status = outcome.status;
    schedules_.settle(sender.run, sender.event_id,
                      status.ok() ? absl::StatusOr<std::string>(outcome.run_id) : status);
    return;
  }
  if (letter.has_parent_closed()) {
    // A parent that has asked its child to stop may close meanwhile, and have something else to
    // say.
    const auto row = world_.store->get(store::keys::letter(id_, sender.run, sender.event_id));
    model::Letter kept;
    if (row.ok() && row->has_value() && kept.ParseFromString(**row) &&
        kept.parent_closed().policy() == letter.parent_closed().policy()) {
      forget();
    }
    return;
  }
  const bool needs_no_answer =
      letter.has_child_closed() || letter.has_stop_scheduled() || letter.has_scheduled_closed();
  if (needs_no_answer) {
    forget();
    return;
  }
  // The sender is closed, and perhaps deleted. Unless a child was to be abandoned, the letter that
  // its parent closed has taken the place of the one that asked for its start.
  const bool is_replaced =
      letter.has_start_child() &&
      letter.start_child().child().parent_close_policy() != model::PARENT_CLOSE_ABANDON;
  const auto forget_late = [is_replaced, forget] {
    if (!is_replaced) forget();
  };
  with_entry(
      sender.run,
      [this, sender, letter, outcome, forget_late](RunEntry& entry) {
        if (!entry.run.is_open()) {
          forget_late();
          return;
        }
        const int64_t id = sender.event_id;
        const bool is_pending = letter.has_start_child() ? entry.run.children.contains(id)
                                                         : entry.run.externals.contains(id);
        if (!is_pending) return;  // it was told before
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (letter.has_start_child()) {
          if (outcome.status.ok()) {
            history::child_started(tx, id, outcome.run_id);
          } else {
            history::child_start_failed(tx, id, kAlreadyExists);
          }
        } else if (outcome.status.ok()) {
          history::external_done(tx, id);
        } else {
          history::external_failed(
              tx, id, absl::IsInvalidArgument(outcome.status) ? kSignalLimit : kNotFound);
        }
        finish(std::move(step));
      },
      forget_late);
}

}  // namespace fairlead::shard
