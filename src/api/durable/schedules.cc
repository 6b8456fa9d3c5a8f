// What people say about a schedule.

#include "api/durable/schedules.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "api/durable/avro.h"
#include "api/durable/commands.h"
#include "api/durable/names.h"
#include "api/durable/payloads.h"
#include "api/durable/priority.h"
#include "schedule/calendar.h"

namespace fairlead::durable {

namespace {

constexpr size_t kNameMax = 255;
constexpr int64_t kSecondsMax = 10LL * 365 * 86'400;
constexpr int kRejectDuplicate = 3;  // the API's WorkflowIdReusePolicy
constexpr std::array<std::string_view, 7> kPolicies = {
    "", "skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all"};

ScheduleFault fault(std::string field, std::string text) {
  return {std::move(field), std::move(text)};
}

// A copy of the members that are known, without those that are null.
json::object chosen(const json::object& from, std::initializer_list<const char*> names) {
  json::object kept;
  for (const char* name : names) {
    if (const auto* value = member(from, name)) kept[name] = *value;
  }
  return kept;
}

std::optional<ScheduleFault> read_crons(const json::object& spec, model::ScheduleSpec* out) {
  const auto* crons = member(spec, "cron_expressions");
  if (crons == nullptr) return std::nullopt;
  constexpr char kField[] = "spec.cron_expressions";
  if (!crons->is_array()) return fault(kField, "cron_expressions must be a list of strings");
  for (const auto& line : crons->as_array()) {
    if (!line.is_string()) return fault(kField, "cron_expressions must be a list of strings");
    out->add_cron_expressions(to_std(line.as_string()));
  }
  return std::nullopt;
}

std::optional<ScheduleFault> read_intervals(const json::object& spec, model::ScheduleSpec* out) {
  const auto* intervals = member(spec, "intervals");
  if (intervals == nullptr) return std::nullopt;
  if (!intervals->is_array()) return fault("spec.intervals", "intervals must be a list");
  for (size_t i = 0; i < intervals->as_array().size(); ++i) {
    const auto& value = intervals->as_array()[i];
    const std::string field = absl::StrCat("spec.intervals.", i);
    if (!value.is_object()) return fault(field, "an interval is an object with every and offset");
    auto* interval = out->add_intervals();
    for (const char* name : {"every", "offset"}) {
      const auto* said = member(value.as_object(), name);
      if (said == nullptr && name == std::string_view("offset")) continue;
      const auto duration = said != nullptr && said->is_string()
                                ? read_iso_duration(text_of(value.as_object(), name))
                                : std::nullopt;
      if (!duration.has_value()) {
        return fault(absl::StrCat(field, ".", name),
                     absl::StrCat(name,
                                  " must be an ISO 8601 duration of weeks, days, hours, "
                                  "minutes and whole seconds, as PT30M"));
      }
      name == std::string_view("every") ? interval->set_every_ns(*duration)
                                        : interval->set_offset_ns(*duration);
    }
  }
  return std::nullopt;
}

// `spec` as it is kept; what is wrong with its times is said in the words of the calendar.
std::optional<ScheduleFault> compile_spec(const json::object& spec, model::ScheduleSpec* out) {
  out->clear_cron_expressions();
  out->clear_intervals();
  out->clear_timezone();
  if (auto wrong = read_crons(spec, out)) return wrong;
  if (auto wrong = read_intervals(spec, out)) return wrong;
  if (const auto* zone = member(spec, "timezone")) {
    if (!zone->is_string()) return fault("spec.timezone", "timezone must be a string");
    out->set_timezone(to_std(zone->as_string()));
  }
  const auto calendar = schedule::Calendar::make(*out);
  if (calendar.ok()) return std::nullopt;
  const std::string message(calendar.status().message());
  const std::string what = message.substr(0, message.find(':'));
  const bool is_cron = what == "cron_expressions";
  return ScheduleFault{what == "spec" ? what : absl::StrCat("spec.", what), message,
                       is_cron ? "invalid_cron_expression" : "invalid_schedule_spec"};
}

std::optional<ScheduleFault> read_seconds(const json::object& action, const char* name,
                                          int64_t* duration) {
  *duration = 0;
  if (member(action, name) == nullptr) return std::nullopt;
  const auto seconds = integer_of(action, name);
  if (!seconds.has_value() || *seconds < 1 || *seconds > kSecondsMax) {
    return fault(absl::StrCat("action.", name),
                 absl::StrCat(name, " must be a whole number of seconds, at least 1"));
  }
  *duration = *seconds * kSecond;
  return std::nullopt;
}

std::optional<ScheduleFault> read_labels(const json::object& kept, const Options& options,
                                         model::ChildInitiated* start) {
  start->clear_memo();
  start->clear_search_attributes();
  for (const auto& entry : object_member(kept, "memo")) {
    const auto value = to_value(entry.value());
    if (!value.ok()) return fault("memo", std::string(value.status().message()));
    (*start->mutable_memo())[to_std(entry.key())] = *value;
  }
  for (const auto& entry : object_member(kept, "search_attributes")) {
    const auto wrong = attribute_fault(entry.key(), entry.value(), options);
    if (!wrong.empty()) return fault("search_attributes", wrong);
    (*start->mutable_search_attributes())[to_std(entry.key())] = json::serialize(entry.value());
  }
  return std::nullopt;
}

// The run that the kept words ask for.
std::optional<ScheduleFault> compile_start(json::object& kept, const ScheduleOwner& owner,
                                           const Options& options, model::ChildInitiated* start) {
  auto action = object_member(kept, "action");
  const std::string type = text_of(action, "workflow_type");
  if (type.empty() || type.size() > kNameMax) {
    return fault("action.workflow_type", "workflow_type must be a string of 1 to 255 bytes");
  }
  std::string queue = text_of(action, "task_queue");
  if (member(action, "task_queue") != nullptr && !action.at("task_queue").is_string()) {
    return fault("action.task_queue", "task_queue must be a string");
  }
  if (queue.empty()) queue = "default";
  if (queue.size() > kNameMax) {
    return fault("action.task_queue", "task_queue must not be longer than 255 bytes");
  }
  int64_t execution = 0;
  int64_t run = 0;
  if (auto wrong = read_seconds(action, "execution_timeout_seconds", &execution)) return wrong;
  if (auto wrong = read_seconds(action, "run_timeout_seconds", &run)) return wrong;
  const auto input = payload_text(member(action, "input"), true);
  if (!input.ok()) return fault("action.input", std::string(input.status().message()));
  model::Priority priority;
  if (const auto wrong = read_priority(action, &priority)) {
    return fault(absl::StrCat("action.", wrong->field), wrong->text);
  }
  if (!input->empty()) {
    action["input"] = *parse_json(*input);
    kept["action"] = action;
  }
  start->set_namespace_id(owner.namespace_id);
  start->set_workflow_type(type);
  start->set_task_queue(engine_queue(queue));
  start->set_execution_timeout_ns(execution);
  start->set_run_timeout_ns(run);
  start->set_task_timeout_ns(options.workflow_lease);
  start->set_reuse_policy(kRejectDuplicate);
  start->set_flavour(model::DURABLE);
  *start->mutable_priority() = priority;
  Members door;
  door.put("schedule_id", owner.schedule_id);
  if (!input->empty()) door.put_raw("input", *input);
  start->set_start_door(door.take());
  return read_labels(kept, options, start);
}

// The newer name of a time limit wins over the older.
json::object normal_action(const json::object& said) {
  auto action =
      chosen(said, {"workflow_type", "task_queue", "input", "execution_timeout_seconds",
                    "run_timeout_seconds", "priority", "fairness_key", "fairness_weight"});
  const auto alias = [&](const char* older, const char* newer) {
    const auto* value = member(said, older);
    if (value != nullptr && member(said, newer) == nullptr) action[newer] = *value;
  };
  alias("workflow_execution_timeout", "execution_timeout_seconds");
  alias("workflow_run_timeout", "run_timeout_seconds");
  return action;
}

std::optional<ScheduleFault> keep_objects(const json::object& body, bool is_new,
                                          const Options& options, json::object* kept,
                                          std::vector<std::string>* changed) {
  for (const char* name : {"spec", "action", "memo", "search_attributes"}) {
    const auto* said = member(body, name);
    const bool is_needed =
        is_new && (name == std::string_view("spec") || name == std::string_view("action"));
    if (said == nullptr && is_needed) return fault(name, absl::StrCat(name, " is missing"));
    if (said == nullptr) continue;
    if (!said->is_object()) return fault(name, absl::StrCat(name, " must be an object"));
    changed->push_back(name);
    if (name == std::string_view("spec")) {
      (*kept)[name] = chosen(said->as_object(), {"cron_expressions", "intervals", "timezone"});
    } else if (name == std::string_view("action")) {
      auto action = object_member(*kept, "action");
      for (const auto& entry : normal_action(said->as_object()))
        action[entry.key()] = entry.value();
      (*kept)[name] = std::move(action);
    } else {
      (*kept)[name] = *said;
    }
  }
  const auto* memo = member(*kept, "memo");
  if (memo != nullptr &&
      static_cast<int64_t>(json::serialize(*memo).size()) > options.memo_bytes_max) {
    return fault("memo",
                 absl::StrCat("memo must not be longer than ", options.memo_bytes_max, " bytes"));
  }
  return std::nullopt;
}

std::optional<ScheduleFault> read_numbers(const json::object& body,
                                          model::ScheduleDefinition* definition,
                                          std::vector<std::string>* changed) {
  if (member(body, "jitter_seconds") != nullptr) {
    const auto jitter = integer_of(body, "jitter_seconds");
    if (!jitter.has_value() || *jitter < 0 || *jitter > 3600) {
      return fault("jitter_seconds", "jitter_seconds must be from 0 to 3600");
    }
    definition->mutable_spec()->set_jitter_ns(*jitter * kSecond);
    changed->emplace_back("jitter_seconds");
  }
  if (member(body, "max_runs") != nullptr) {
    const auto runs = integer_of(body, "max_runs");
    if (!runs.has_value() || *runs < 1) return fault("max_runs", "max_runs must be at least 1");
    definition->set_runs_max(*runs);
    changed->emplace_back("max_runs");
  }
  return std::nullopt;
}

}  // namespace

std::string_view overlap_name(model::OverlapPolicy policy) {
  return kPolicies[static_cast<size_t>(policy)];
}

bool read_overlap(const json::object& body, model::OverlapPolicy* policy) {
  const auto* said = member(body, "overlap_policy");
  if (said == nullptr) return true;
  const std::string name = text_of(body, "overlap_policy");
  const auto found = std::find(kPolicies.begin() + 1, kPolicies.end(), name);
  if (found == kPolicies.end()) return false;
  *policy = static_cast<model::OverlapPolicy>(found - kPolicies.begin());
  return true;
}

std::optional<ScheduleFault> read_schedule(const json::object& body, bool is_new,
                                           const ScheduleOwner& owner, const Options& options,
                                           model::ScheduleDefinition* definition,
                                           std::vector<std::string>* changed) {
  auto kept = object_of(definition->door());
  if (auto wrong = keep_objects(body, is_new, options, &kept, changed)) return wrong;
  if (auto wrong = read_numbers(body, definition, changed)) return wrong;
  if (auto wrong = compile_spec(object_member(kept, "spec"), definition->mutable_spec())) {
    return wrong;
  }
  if (auto wrong = compile_start(kept, owner, options, definition->mutable_start())) return wrong;
  auto policy = is_new ? model::OVERLAP_SKIP : definition->overlap();
  if (!read_overlap(body, &policy)) {
    return fault("overlap_policy",
                 "overlap_policy must be skip, buffer_one, buffer_all, cancel_other, "
                 "terminate_other or allow_all");
  }
  definition->set_overlap(policy);
  if (member(body, "overlap_policy") != nullptr) changed->emplace_back("overlap_policy");
  if (const auto* note = member(body, "note")) {
    if (!note->is_string() || note->as_string().size() > 1000) {
      return fault("note", "note must be a string of at most 1000 bytes");
    }
    definition->set_note(to_std(note->as_string()));
    changed->emplace_back("note");
  }
  definition->set_door(members_of(kept));
  return std::nullopt;
}

std::optional<DurationNs> read_iso_duration(std::string_view text) {
  if (text.size() > 64 || !text.starts_with('P')) return std::nullopt;
  text.remove_prefix(1);
  // Each unit at most once, in this order.
  std::string_view units = "WDTHMS";
  DurationNs total = 0;
  bool has_time = false;
  bool has_any = false;
  while (!text.empty()) {
    if (text.front() == 'T') {
      if (has_time) return std::nullopt;
      has_time = true;
      text.remove_prefix(1);
      units = "HMS";
      has_any = false;  // something has to follow
      continue;
    }
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    int64_t number = 0;
    if (digits == 0 || digits == text.size() ||
        !absl::SimpleAtoi(absl::string_view(text.data(), digits), &number)) {
      return std::nullopt;
    }
    const char unit = text[digits];
    const size_t at = units.find(unit);
    const bool is_allowed = at != units.npos && (has_time || unit == 'W' || unit == 'D');
    if (!is_allowed) return std::nullopt;
    units.remove_prefix(at + 1);
    const DurationNs length = unit == 'W'   ? 7 * kDay
                              : unit == 'D' ? kDay
                              : unit == 'H' ? kHour
                              : unit == 'M' ? kMinute
                                            : kSecond;
    DurationNs part = 0;
    if (__builtin_mul_overflow(number, length, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return std::nullopt;
    }
    text.remove_prefix(digits + 1);
    has_any = true;
  }
  if (!has_any) return std::nullopt;
  return total;
}

std::optional<TimeNs> read_iso_time(const std::string& text) {
  absl::Time time;
  std::string error;
  for (const char* format :
       {"%Y-%m-%d%ET%H:%M:%E*S%Ez", "%Y-%m-%d%ET%H:%M:%E*S", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d"}) {
    if (absl::ParseTime(format, text, &time, &error) && time != absl::InfiniteFuture() &&
        time != absl::InfinitePast()) {
      return absl::ToUnixNanos(time);
    }
  }
  return std::nullopt;
}

}  // namespace fairlead::durable
