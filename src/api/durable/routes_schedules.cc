// The routes of schedules.

#include "api/durable/desk.h"

namespace fairlead::durable {

void Door::Impl::add_schedule_routes(std::vector<Route>* routes) {
  struct Entry {
    std::string_view method;
    std::string_view path;
    Handler handler;
    RouteDoc doc;
  };
  static const Entry kEntries[] = {
      {"GET",
       "schedules",
       &Impl::list_schedules,
       {"List schedules, newest first", "", "200 Schedules, 400 ListRefused, 422 ListRefused",
        "schedule_status workflow_type schedule_query workflow_page_size next_page_token"}},
      {"POST",
       "schedules",
       &Impl::create_schedule,
       {"Make a schedule", "NewSchedule", "201 ScheduleChanged, 409, 422, 429"}},
      {"GET",
       "schedules/{schedule_id}",
       &Impl::describe_schedule,
       {"Describe a schedule", "", "200 ScheduleDetail, 429"}},
      {"PUT",
       "schedules/{schedule_id}",
       &Impl::update_schedule,
       {"Change a schedule, of its action what is said", "ScheduleChange",
        "200 ScheduleChanged, 422, 429"}},
      {"DELETE",
       "schedules/{schedule_id}",
       &Impl::delete_schedule,
       {"Delete a schedule; its history stays for a while", "", "200 ScheduleChanged, 429"}},
      {"POST",
       "schedules/{schedule_id}/pause",
       &Impl::pause_schedule,
       {"Let a schedule start nothing", "ScheduleNote", "200 ScheduleChanged, 422, 429"}},
      {"POST",
       "schedules/{schedule_id}/resume",
       &Impl::resume_schedule,
       {"Let a paused schedule go on, from now", "ScheduleNote", "200 ScheduleChanged, 422, 429"}},
      {"POST",
       "schedules/{schedule_id}/trigger",
       &Impl::trigger_schedule,
       {"Start what is scheduled now", "ScheduleTrigger", "200 ScheduleTriggered, 422, 429"}},
      {"POST",
       "schedules/{schedule_id}/backfill",
       &Impl::backfill_schedule,
       {"Start what would have been started in a time that has passed", "ScheduleBackfill",
        "200 ScheduleBackfilled, 422, 429"}},
      {"GET",
       "schedules/{schedule_id}/history",
       &Impl::schedule_history,
       {"Read what has happened to a schedule, also to a deleted one", "",
        "200 ScheduleHistory, 422, 429", "event_limit after_sequence"}},
  };
  for (const auto& each : kEntries) {
    routes->push_back(
        {each.method, each.path, Plane::kControl, "oa", each.handler, Operation{}, each.doc});
  }
}

}  // namespace fairlead::durable
