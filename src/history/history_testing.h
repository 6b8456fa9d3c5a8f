#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "history/activity.h"
#include "history/codec.h"
#include "history/commands.h"
#include "history/deadlines.h"
#include "history/lifecycle.h"
#include "history/transaction.h"
#include "history/workflow_task.h"

namespace fairlead::history {

// Keeps events in the engine's own words, so that tests can read them back.
class PlainCodec final : public Codec {
 public:
  void append_event(const model::Event& event, std::string* history) const override {
    wire::Writer(history).bytes(1, event.SerializeAsString());
  }
  model::Event read_event(std::string_view framed) const override {
    wire::Reader reader(framed);
    model::Event event;
    if (reader.next()) {
      event.ParseFromArray(reader.bytes().data(), static_cast<int>(reader.bytes().size()));
    }
    return event;
  }
  model::ContinueAsNew begin_again(std::string_view, const model::Event&) const override {
    return {};
  }
  std::string name_update(std::string_view request, const std::string&) const override {
    return std::string(request);
  }
  std::string update_outcome(std::string_view) const override { return ""; }
  std::string tell_parent(const model::Event& closing) const override { return closing.door(); }
};

// One run on a table top: every step is told the time, and everything it left is kept for
// inspection.
class Bench {
 public:
  Run run;
  Limits limits;
  TimeNs now = 1'000'000 * kSecond;
  std::vector<model::Event> events;
  std::vector<TaskOffer> offers;  // of the last step
  std::vector<TaskDrop> drops;    // of the last step
  bool closed_now = false;
  std::vector<Posted> posted;          // of the last step
  std::optional<Successor> successor;  // of the last step
  std::vector<int64_t> calls;          // of the last step
  model::LeftOpen left_open;           // of the last step

  Bench() {
    auto& state = run.state;
    state.set_workflow_id("order-1");
    state.set_run_id("run-1");
    state.set_first_run_id("run-1");
    state.set_task_queue("orders");
    state.set_next_event_id(1);
  }

  template <typename Act>
  void step(Act act) {
    Transaction tx(&run, &codec_, &limits, now, kDay);
    tx.successor_run_id = "run-2";
    act(tx);
    tx.finish();
    wire::Reader reader(tx.events());
    while (reader.next()) {
      model::Event event;
      event.ParseFromArray(reader.bytes().data(), static_cast<int>(reader.bytes().size()));
      events.push_back(event);
    }
    offers = tx.offers();
    drops = tx.drops();
    closed_now = tx.closed_now();
    posted = tx.posted();
    successor = tx.successor();
    calls = tx.calls();
    left_open = tx.left_open();
    run.touched_activities.clear();
    run.touched_timers.clear();
    run.touched_children.clear();
    run.touched_externals.clear();
    run.touched_updates.clear();
    run.touched_callbacks.clear();
    run.touched_requests.clear();
  }

  void start(Beginning beginning = {}) {
    step([&](Transaction& tx) { start_run(tx, beginning); });
  }

  // A worker takes the waiting workflow task.
  void take_task(bool from_sticky = false) {
    step([&](Transaction& tx) {
      start_workflow_task(tx, run.state.workflow_task().stamp(),
                          {"worker", "request", from_sticky});
    });
  }

  // The worker completes its task with these commands, sticky if a queue is given. False if
  // refused.
  bool complete_task(std::vector<model::Event> commands = {}, const std::string& sticky = "") {
    if (check_commands(run, limits, &commands).has_value()) return false;
    step([&](Transaction& tx) {
      const int64_t id = complete_workflow_task(tx, "");
      tx.state().clear_sticky();
      if (!sticky.empty()) {
        tx.state().mutable_sticky()->set_name(sticky);
        tx.state().mutable_sticky()->set_schedule_to_start_ns(5 * kSecond);
      }
      apply_commands(tx, std::move(commands), id);
    });
    return true;
  }

  void take_activity(const std::string& id) {
    step([&](Transaction& tx) {
      auto* activity = run.find_activity(id);
      start_activity(tx, activity->scheduled_id(), activity->stamp(), {"worker", "request"});
    });
  }

  void signal(const std::string& name = "poke") {
    step([&](Transaction& tx) { (void)signal_run(tx, name, ""); });
  }

  void wait(DurationNs duration) {
    now += duration;
    step([&](Transaction& tx) { pass_time(tx); });
  }

  std::vector<int> kinds(size_t from = 0) const {
    std::vector<int> kinds;
    for (size_t i = from; i < events.size(); ++i) kinds.push_back(events[i].kind());
    return kinds;
  }

 private:
  PlainCodec codec_;
};

inline model::Event schedule(const std::string& id, DurationNs start_to_close = 10 * kSecond) {
  model::Event command;
  command.set_kind(model::ACTIVITY_SCHEDULED);
  command.mutable_activity_scheduled()->set_activity_id(id);
  command.mutable_activity_scheduled()->set_activity_type("charge");
  command.mutable_activity_scheduled()->set_start_to_close_ns(start_to_close);
  return command;
}

inline model::Event cancel_activity_command(int64_t scheduled_id) {
  model::Event command;
  command.set_kind(model::ACTIVITY_CANCEL_REQUESTED);
  command.mutable_activity_cancel_requested()->set_scheduled_id(scheduled_id);
  return command;
}

inline model::Event start_timer(const std::string& id, DurationNs after) {
  model::Event command;
  command.set_kind(model::TIMER_STARTED);
  command.mutable_timer_started()->set_timer_id(id);
  command.mutable_timer_started()->set_start_to_fire_ns(after);
  return command;
}

inline model::Event cancel_timer(const std::string& id) {
  model::Event command;
  command.set_kind(model::TIMER_CANCELED);
  command.mutable_timer_ended()->set_timer_id(id);
  return command;
}

inline model::Event complete_workflow() {
  model::Event command;
  command.set_kind(model::WORKFLOW_COMPLETED);
  command.mutable_workflow_closed();
  return command;
}

}  // namespace fairlead::history
