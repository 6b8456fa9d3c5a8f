#include "simulation/history_check.h"

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "temporal/api/enums/v1/event_type.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using temporal::api::history::v1::HistoryEvent;

TimeNs time_of(const HistoryEvent& event) {
  return event.event_time().seconds() * kSecond + event.event_time().nanos();
}

bool is_closing(const HistoryEvent& event) {
  switch (event.event_type()) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
      return true;
    default:
      return false;
  }
}

Events without_virtual(Events events) {
  const size_t count = events.size();
  const auto is_scheduled = [&](size_t from_end) {
    return count >= from_end &&
           events[count - from_end].event_type() == EVENT_TYPE_WORKFLOW_TASK_SCHEDULED;
  };
  if (is_scheduled(1)) {
    events.pop_back();
  } else if (is_scheduled(2) && events.back().event_type() == EVENT_TYPE_WORKFLOW_TASK_STARTED) {
    events.resize(count - 2);
  }
  return events;
}

const HistoryEvent* reset_event(const Events& events, const std::string& run_id) {
  for (const auto& event : events) {
    const auto& failed = event.workflow_task_failed_event_attributes();
    if (failed.cause() == WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW &&
        failed.new_run_id() == run_id) {
      return &event;
    }
  }
  return nullptr;
}

namespace {

// Walks a history once, remembering what is pending.
class Checker {
 public:
  Checker(TimeNs now, Probes* probes) : now_(now), probes_(probes) {}

  std::string check(const Events& events) {
    for (const auto& event : events) {
      visit(event);
      if (!error_.empty()) return error_;
      is_closed_ = is_closing(event);
      before_ = event.event_type();
      ++next_id_;
    }
    return "";
  }

 private:
  void fail(std::string_view what) {
    if (error_.empty()) error_ = absl::StrCat("event ", next_id_, ": ", std::string(what));
  }

  void visit(const HistoryEvent& event) {
    if (event.event_id() != next_id_) fail(absl::StrCat("its id is ", event.event_id()));
    if (is_closed_) fail("it follows the closing event");
    if ((next_id_ == 1) != (event.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)) {
      fail("a history begins with its started event, once");
    }
    check_time(event);
    check_task_is_alone(event);
    visit_task(event);
    visit_activity(event);
    visit_timer(event);
  }

  // What arrived while a task was out is written after the task's end with its own time, which then
  // is between the task's start and the present. A started activity tells when it started.
  void check_time(const HistoryEvent& event) {
    const TimeNs time = time_of(event);
    if (time > now_) fail("it is from the future");
    switch (event.event_type()) {
      case EVENT_TYPE_ACTIVITY_TASK_STARTED:
        return;
      case EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
      case EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
      case EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
      case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
      case EVENT_TYPE_ACTIVITY_TASK_FAILED:
      case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
      case EVENT_TYPE_ACTIVITY_TASK_CANCELED:
      case EVENT_TYPE_TIMER_FIRED:
      case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
      case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
      case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        if (time < task_started_at_) fail("it is older than the task that kept it waiting");
        if (time < last_time_) probes_->hit(Probe::kBufferedFlush);
        last_time_ = std::max(last_time_, time);
        return;
      default:
        if (time < last_time_) fail("it is older than the event before it");
        last_time_ = time;
    }
  }

  void check_task_is_alone(const HistoryEvent& event) {
    if (before_ != EVENT_TYPE_WORKFLOW_TASK_STARTED) return;
    switch (event.event_type()) {
      case EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
      case EVENT_TYPE_WORKFLOW_TASK_FAILED:
      case EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        return;
      default:
        fail("it stands between a workflow task's start and its end");
    }
  }

  template <typename Attributes>
  void end_task(const Attributes& attributes, bool was_started) {
    if (scheduled_ == 0) fail("a workflow task ends that was never scheduled");
    if (attributes.scheduled_event_id() != scheduled_) fail("it names another scheduled event");
    if (attributes.started_event_id() != (was_started ? started_ : 0)) {
      fail("it names another started event");
    }
    if (was_started && started_ == 0) fail("a workflow task ends that was never started");
    scheduled_ = 0;
    started_ = 0;
  }

  void visit_task(const HistoryEvent& event) {
    switch (event.event_type()) {
      case EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
        if (scheduled_ != 0) fail("a second workflow task is scheduled");
        scheduled_ = event.event_id();
        attempt_ = event.workflow_task_scheduled_event_attributes().attempt();
        return;
      case EVENT_TYPE_WORKFLOW_TASK_STARTED:
        if (started_ != 0) fail("a workflow task starts twice");
        if (event.workflow_task_started_event_attributes().scheduled_event_id() != scheduled_) {
          fail("it names another scheduled event");
        }
        started_ = event.event_id();
        task_started_at_ = time_of(event);
        return;
      case EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        if (attempt_ > 1) probes_->hit(Probe::kVirtualTaskCompleted);
        end_task(event.workflow_task_completed_event_attributes(), true);
        return;
      case EVENT_TYPE_WORKFLOW_TASK_FAILED:
        probes_->hit(Probe::kTaskFailed);
        end_task(event.workflow_task_failed_event_attributes(), true);
        return;
      case EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT: {
        const auto& timed_out = event.workflow_task_timed_out_event_attributes();
        const bool is_sticky = timed_out.timeout_type() == TIMEOUT_TYPE_SCHEDULE_TO_START;
        probes_->hit(is_sticky ? Probe::kStickyTimeout : Probe::kTaskTimedOut);
        end_task(timed_out, !is_sticky);
        return;
      }
      default:
        return;
    }
  }

  struct Activity {
    int64_t started = 0;
    int64_t cancel_requested = 0;
    bool has_ended = false;
  };

  template <typename Attributes>
  void end_activity(const Attributes& attributes) {
    const auto found = activities_.find(attributes.scheduled_event_id());
    if (found == activities_.end() || found->second.has_ended) {
      fail("an activity ends that is not pending");
      return;
    }
    if (attributes.started_event_id() != found->second.started) {
      fail(absl::StrCat("it names started event ", attributes.started_event_id(), " and not ",
                        found->second.started));
    }
    found->second.has_ended = true;
  }

  void visit_activity(const HistoryEvent& event) {
    switch (event.event_type()) {
      case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        activities_[event.event_id()] = {};
        return;
      case EVENT_TYPE_ACTIVITY_TASK_STARTED: {
        const auto& started = event.activity_task_started_event_attributes();
        const auto found = activities_.find(started.scheduled_event_id());
        if (found == activities_.end() || found->second.started != 0) {
          fail("an activity starts that is not waiting");
          return;
        }
        found->second.started = event.event_id();
        if (started.attempt() > 1) probes_->hit(Probe::kActivityRetried);
        return;
      }
      case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        return end_activity(event.activity_task_completed_event_attributes());
      case EVENT_TYPE_ACTIVITY_TASK_FAILED:
        return end_activity(event.activity_task_failed_event_attributes());
      case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        probes_->hit(Probe::kActivityTimedOut);
        return end_activity(event.activity_task_timed_out_event_attributes());
      case EVENT_TYPE_ACTIVITY_TASK_CANCELED: {
        const auto& canceled = event.activity_task_canceled_event_attributes();
        probes_->hit(Probe::kActivityCanceled);
        const auto asked = activities_[canceled.scheduled_event_id()].cancel_requested;
        if (asked == 0 || canceled.latest_cancel_requested_event_id() != asked) {
          fail("an activity is canceled without having been asked");
        }
        return end_activity(canceled);
      }
      case EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: {
        const auto& asked = event.activity_task_cancel_requested_event_attributes();
        const auto found = activities_.find(asked.scheduled_event_id());
        if (found == activities_.end()) return fail("an unknown activity is to be canceled");
        found->second.cancel_requested = event.event_id();
        return;
      }
      default:
        return;
    }
  }

  struct Timer {
    TimeNs due = 0;
    int64_t started = 0;
  };

  void visit_timer(const HistoryEvent& event) {
    const auto end = [&](const std::string& id, int64_t started) {
      const auto found = timers_.find(id);
      if (found == timers_.end() || found->second.started != started) {
        fail(absl::StrCat("timer ", id, " ends and is not running"));
        return TimeNs{0};
      }
      const TimeNs due = found->second.due;
      timers_.erase(found);
      return due;
    };
    if (event.event_type() == EVENT_TYPE_TIMER_STARTED) {
      const auto& started = event.timer_started_event_attributes();
      const auto& wait = started.start_to_fire_timeout();
      const TimeNs due = time_of(event) + wait.seconds() * kSecond + wait.nanos();
      if (!timers_.emplace(started.timer_id(), Timer{due, event.event_id()}).second) {
        fail("a timer with this id is running");
      }
    } else if (event.event_type() == EVENT_TYPE_TIMER_FIRED) {
      const auto& fired = event.timer_fired_event_attributes();
      if (time_of(event) < end(fired.timer_id(), fired.started_event_id())) {
        fail("a timer fired early");
      }
    } else if (event.event_type() == EVENT_TYPE_TIMER_CANCELED) {
      const auto& canceled = event.timer_canceled_event_attributes();
      probes_->hit(Probe::kTimerCanceled);
      end(canceled.timer_id(), canceled.started_event_id());
    }
  }

  const TimeNs now_;
  Probes* const probes_;
  std::string error_;
  int64_t next_id_ = 1;
  bool is_closed_ = false;
  EventType before_ = EVENT_TYPE_UNSPECIFIED;
  TimeNs last_time_ = 0;
  TimeNs task_started_at_ = 0;
  int64_t scheduled_ = 0;
  int64_t started_ = 0;
  int32_t attempt_ = 0;
  absl::btree_map<int64_t, Activity> activities_;
  absl::btree_map<std::string, Timer> timers_;
};

}  // namespace

std::string check_history(const Events& events, TimeNs now, Probes* probes) {
  return Checker(now, probes).check(events);
}

}  // namespace fairlead::sim
