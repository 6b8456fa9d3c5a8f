#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/schedules.pb.h"
#include "schedule/schedule.h"
#include "shard/requests.h"

// What doors ask about schedules. Doors check and keep what people say (model::ScheduleDefinition);
// when a run is wanted, and whether it may begin, is decided in schedule/.
namespace fairlead::shard {

struct ScheduleRef {
  NamespaceNum ns;
  std::string schedule_id;
};

struct CreateSchedule {
  ScheduleRef schedule;
  model::ScheduleDefinition definition;
  bool is_paused = false;
};

struct UpdateSchedule {
  ScheduleRef schedule;
  // Changes the present definition and names the fields. Runs where the schedule lives.
  absl::AnyInvocable<absl::Status(model::ScheduleDefinition&, std::vector<std::string>* changed)>
      change;
};

struct PauseSchedule {
  ScheduleRef schedule;
  bool pauses = true;  // else it is resumed
  std::string note;    // empty: as it was
};

struct TriggerSchedule {
  ScheduleRef schedule;
  model::OverlapPolicy policy = model::OVERLAP_UNSPECIFIED;  // the schedule's own
};

struct BackfillSchedule {
  ScheduleRef schedule;
  TimeNs from = 0;
  TimeNs to = 0;  // not included
  model::OverlapPolicy policy = model::OVERLAP_UNSPECIFIED;
};

struct ScheduleHistoryRequest {
  ScheduleRef schedule;
  int64_t after_sequence = 0;
  int64_t max = 100;
};

struct ScheduleHistoryPage {
  std::vector<model::ScheduleEvent> events;
  bool has_more = false;
};

// Errors: NotFound of a schedule that is not there or deleted, AlreadyExists, and of definitions
// that say nothing sensible InvalidArgument in the words of schedule::Calendar.
class ScheduleEngine {
 public:
  virtual ~ScheduleEngine() = default;

  virtual void create_schedule(CreateSchedule request, Reply<Done> reply) = 0;
  virtual void describe_schedule(ScheduleRef schedule, Reply<model::Schedule> reply) = 0;
  virtual void update_schedule(UpdateSchedule request, Reply<Done> reply) = 0;
  virtual void pause_schedule(PauseSchedule request, Reply<Done> reply) = 0;
  virtual void delete_schedule(ScheduleRef schedule, Reply<Done> reply) = 0;
  // Both are answered when it is known whether the runs have started.
  virtual void trigger_schedule(TriggerSchedule request, Reply<schedule::Fired> reply) = 0;
  virtual void backfill_schedule(BackfillSchedule request,
                                 Reply<std::vector<schedule::Fired>> reply) = 0;
  // Also of a schedule that was deleted, for as long as a closed run is kept.
  virtual void read_schedule_history(ScheduleHistoryRequest request,
                                     Reply<ScheduleHistoryPage> reply) = 0;
};

}  // namespace fairlead::shard
