#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/durable/json.h"
#include "api/durable/options.h"
#include "model/schedules.pb.h"

// Schedules as people write and read them.
namespace fairlead::durable {

// What is wrong with a field of a schedule.
struct ScheduleFault {
  std::string field;
  std::string text;
  std::string reason = "validation_failed";
};

// Whom the runs of a schedule belong to.
struct ScheduleOwner {
  std::string schedule_id;
  std::string namespace_id;
};

// Puts what a request says into a definition: everything if it is new, else what is there, of the
// action member by member. `changed` gets the names of what was said.
std::optional<ScheduleFault> read_schedule(const json::object& body, bool is_new,
                                           const ScheduleOwner& owner, const Options& options,
                                           model::ScheduleDefinition* definition,
                                           std::vector<std::string>* changed);

// Reads an optional policy; false if it is none. What is not said stays.
bool read_overlap(const json::object& body, model::OverlapPolicy* policy);
std::string_view overlap_name(model::OverlapPolicy policy);

// "PT1H30M", "P1D", "P2W": whole seconds to weeks. A month has no length.
std::optional<DurationNs> read_iso_duration(std::string_view text);
// "2026-11-18T06:00:00Z" and other forms of ISO 8601; without a zone it is UTC.
std::optional<TimeNs> read_iso_time(const std::string& text);

// As a list shows it, and with all that is known.
json::object schedule_record(const std::string& ns, const model::Schedule& schedule);
json::object schedule_detail(const std::string& ns, const model::Schedule& schedule);
json::object schedule_event_record(const std::string& schedule_id,
                                   const model::ScheduleEvent& event);

}  // namespace fairlead::durable
