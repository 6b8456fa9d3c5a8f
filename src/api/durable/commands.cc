#include "api/durable/commands.h"

#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "api/durable/avro.h"
#include "api/durable/names.h"
#include "api/durable/payloads.h"
#include "api/durable/priority.h"
#include "api/durable/sessions.h"
#include "shard/session_desk.h"

namespace fairlead::durable {

namespace {

constexpr int32_t kRejectDuplicate = 3;  // the Temporal API's number
constexpr int64_t kSecondsMax = 10LL * 365 * 86'400;
constexpr const char* kGroupFields[] = {
    "parallel_group_id",     "parallel_group_kind",   "parallel_group_base_sequence",
    "parallel_group_size",   "parallel_group_index",  "parallel_group_path",
    "parallel_group_mode",   "selection_member_key",  "selection_member_index",
    "selection_member_kind", "selection_member_size", "selection_member_base_sequence"};

// Reads one command. The first thing that is wrong stays in the fault.
class CommandReader {
 public:
  CommandReader(const json::object& command, size_t index, const CommandContext& context,
                std::vector<model::Event>* drafts, CommandFault* fault)
      : command_(command), index_(index), context_(context), drafts_(*drafts), fault_(*fault) {}

  bool read() {
    using Read = bool (CommandReader::*)();
    static constexpr std::array<std::pair<std::string_view, Read>, 15> kTypes = {{
        {"schedule_activity", &CommandReader::schedule_activity},
        {"start_timer", &CommandReader::start_timer},
        {"start_child_workflow", &CommandReader::start_child},
        {"open_condition_wait", &CommandReader::open_wait},
        {"record_side_effect", &CommandReader::side_effect},
        {"record_version_marker", &CommandReader::version_marker},
        {"upsert_search_attributes", &CommandReader::search_attributes},
        {"upsert_memo", &CommandReader::memo},
        {"record_local_activity", &CommandReader::local_activity},
        {"cancel_selection_operation", &CommandReader::cancel_selected},
        {"complete_update", &CommandReader::complete_update},
        {"fail_update", &CommandReader::fail_update},
        {"complete_workflow", &CommandReader::complete},
        {"fail_workflow", &CommandReader::fail},
        {"continue_as_new", &CommandReader::continue_as_new},
    }};
    const std::string type = text_of(command_, "type");
    for (const auto& [name, read] : kTypes) {
      if (name == type) return (this->*read)();
    }
    return refuse("type", type.empty() ? "a command has a type"
                                       : absl::StrCat("no command ", type, " is built here"));
  }

 private:
  bool refuse(std::string_view field, std::string text) {
    fault_.field = absl::StrCat("commands.", index_, ".", std::string(field));
    fault_.text = std::move(text);
    return false;
  }

  bool required(const char* field, std::string* text) {
    *text = text_of(command_, field);
    return !text->empty() || refuse(field, absl::StrCat(field, " is missing"));
  }

  bool payload(const char* field, std::string* text) {
    auto given = payload_text(member(command_, field), false);
    if (!given.ok()) return refuse(field, std::string(given.status().message()));
    *text = *std::move(given);
    return true;
  }

  bool seconds(const char* field, int64_t min, std::optional<int64_t>* value) {
    if (member(command_, field) == nullptr) return true;
    *value = integer_of(command_, field);
    if (value->has_value() && **value >= min && **value <= kSecondsMax) return true;
    return refuse(field, absl::StrCat(field, " must be a whole number of at least ", min));
  }
  bool duration(const char* field, DurationNs* value) {
    std::optional<int64_t> given;
    if (!seconds(field, 1, &given)) return false;
    *value = given.value_or(0) * kSecond;
    return true;
  }

  // The fields of the parallel group that the command is done in, to be copied into all its events,
  // and the step that the worker expects it to be.
  bool group(model::Step* step, Members* fields) {
    for (const char* name : kGroupFields) {
      if (const auto* value = member(command_, name)) fields->put(name, *value);
    }
    if (member(command_, "parallel_group_base_sequence") == nullptr) return true;
    json::array path;
    if (const auto* given = member(command_, "parallel_group_path");
        given != nullptr && given->is_array()) {
      path = given->as_array();
    }
    if (path.empty()) path.emplace_back(command_);
    for (const auto& entry : path) {
      const json::object& level = entry.is_object() ? entry.as_object() : command_;
      const auto base = integer_of(level, "parallel_group_base_sequence");
      const auto index = integer_of(level, "parallel_group_index");
      const auto size = integer_of(level, "parallel_group_size");
      if (!base || !index || !size || *base < 1 || *index < 0 || *size < 1 || *index >= *size ||
          *base > std::numeric_limits<int64_t>::max() - *index) {
        return conflict("the command's place in its parallel group is not one");
      }
      const int64_t expected = *base + *index;
      if (step->sequence() != 0 && step->sequence() != expected) {
        return conflict("the command's parallel groups do not agree about its step");
      }
      step->set_sequence(expected);
      if (text_of(level, "parallel_group_mode") == "select") {
        if (step->group_base() != 0) return conflict("a selection stands in no other group");
        if (!selection(level, *size, step)) return false;
      }
      if (step->group_base() == 0) step->set_group_base(*base);
    }
    return true;
  }

  bool selection(const json::object& level, int64_t size, model::Step* step) {
    auto* place = step->mutable_selection();
    step->set_selects(true);
    const auto* key = member(level, "selection_member_key");
    const bool is_key =
        key != nullptr &&
        (key->is_string() ? !key->as_string().empty() : key->is_int64() && key->as_int64() >= 0);
    const auto index = integer_of(level, "selection_member_index");
    const auto base = integer_of(level, "selection_member_base_sequence");
    const auto leaves = integer_of(level, "selection_member_size");
    if (!is_key || !index || !base || !leaves || *index < 0) {
      return conflict("the command's place in its selection is not one");
    }
    place->set_group_id(text_of(level, "parallel_group_id"));
    place->set_size(size);
    place->set_member_key(json::serialize(*key));
    place->set_member_index(*index);
    place->set_member_base(*base);
    place->set_member_size(*leaves);
    place->set_member_kind(text_of(level, "selection_member_kind"));
    return true;
  }

  bool cancel_selected() {
    std::string group_id;
    const auto base = integer_of(command_, "member_base_sequence");
    if (!required("selection_group_id", &group_id)) return false;
    if (!base.has_value()) {
      return refuse("member_base_sequence", "member_base_sequence must be a whole number");
    }
    model::Event draft;
    draft.set_kind(model::SELECTION_CANCELED);
    draft.mutable_selection()->set_group_id(group_id);
    draft.mutable_selection()->mutable_member()->set_base(*base);
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool conflict(std::string text) {
    fault_.is_conflict = true;
    return refuse("parallel_group_path", std::move(text));
  }

  bool retry_policy(model::RetryPolicy* policy) {
    policy->set_maximum_attempts(1);
    policy->add_pauses_ns(0);
    const auto* given = member(command_, "retry_policy");
    if (given == nullptr) return true;
    if (!given->is_object()) return refuse("retry_policy", "retry_policy must be an object");
    const auto& fields = given->as_object();
    const int64_t attempts = integer_of(fields, "max_attempts").value_or(1);
    if (attempts < 1 || attempts > 1'000'000) {
      return refuse("retry_policy", "max_attempts must be at least 1");
    }
    policy->set_maximum_attempts(static_cast<int32_t>(attempts));
    if (const auto* pauses = member(fields, "backoff_seconds"); pauses != nullptr) {
      if (!pauses->is_array()) return refuse("retry_policy", "backoff_seconds must be a list");
      if (!pauses->as_array().empty()) policy->clear_pauses_ns();
      for (const auto& pause : pauses->as_array()) {
        const bool is_fine =
            pause.is_int64() && pause.as_int64() >= 0 && pause.as_int64() <= kSecondsMax;
        if (!is_fine) return refuse("retry_policy", "backoff_seconds are whole numbers");
        policy->add_pauses_ns(pause.as_int64() * kSecond);
      }
    }
    if (const auto* types = member(fields, "non_retryable_error_types");
        types != nullptr && types->is_array()) {
      for (const auto& type : types->as_array()) {
        if (type.is_string()) policy->add_non_retryable_error_types(to_std(type.as_string()));
      }
    }
    return true;
  }

  bool priority(model::Priority* asked) {
    const auto fault = read_priority(command_, asked);
    return !fault.has_value() || refuse(fault->field, fault->text);
  }

  bool cancellation_policy(model::CancellationPolicy* policy, Members* fields) {
    const auto* given = member(command_, "cancellation_policy");
    if (given == nullptr) return true;
    const std::string name = text_of(command_, "cancellation_policy");
    if (name == "try_cancel") {
      *policy = model::CANCELLATION_TRY;
    } else if (name == "wait_cancellation_completed") {
      *policy = model::CANCELLATION_WAIT;
    } else if (name == "abandon") {
      *policy = model::CANCELLATION_ABANDON;
    } else {
      return refuse("cancellation_policy", absl::StrCat("there is no policy ", name));
    }
    fields->put("cancellation_policy", *given);
    return true;
  }

  // The SDK always names a queue for the activity. If the session has one, too, that is meant.
  bool worker_session(model::ActivityScheduled* activity) {
    const auto* given = member(command_, "worker_session");
    if (given == nullptr) return true;
    if (!given->is_object()) return refuse("worker_session", "worker_session must be an object");
    const auto& asked = given->as_object();
    if (const auto fault = read_session(asked, activity->mutable_session())) {
      return refuse(absl::StrCat("worker_session.", fault->field), fault->text);
    }
    if (const auto queue = text_of(asked, "queue"); !queue.empty()) {
      if (queue.size() > 255) {
        return refuse("worker_session.queue", "queue must be 1 to 255 bytes");
      }
      activity->set_task_queue(engine_queue(queue));
    }
    return true;
  }

  bool schedule_activity() {
    model::Event draft;
    draft.set_kind(model::ACTIVITY_SCHEDULED);
    auto* activity = draft.mutable_activity_scheduled();
    std::string type;
    std::string arguments;
    if (!required("activity_type", &type) || !payload("arguments", &arguments)) return false;
    activity->set_activity_id(context_.make_id());
    activity->set_activity_type(type);
    if (const auto queue = text_of(command_, "queue"); !queue.empty()) {
      activity->set_task_queue(engine_queue(queue));
    }
    DurationNs to_close = 0;
    DurationNs to_start = 0;
    DurationNs attempt = 0;
    DurationNs heartbeat = 0;
    if (!duration("schedule_to_close_timeout", &to_close) ||
        !duration("schedule_to_start_timeout", &to_start) ||
        !duration("start_to_close_timeout", &attempt) ||
        !duration("heartbeat_timeout", &heartbeat) || !priority(activity->mutable_priority()) ||
        !retry_policy(activity->mutable_retry_policy())) {
      return false;
    }
    const auto exceeds = [](DurationNs a, DurationNs b) { return a > 0 && b > 0 && a > b; };
    if (exceeds(heartbeat, attempt)) {
      return refuse("heartbeat_timeout", "heartbeat_timeout exceeds start_to_close_timeout");
    }
    if (exceeds(attempt, to_close)) {
      return refuse("start_to_close_timeout",
                    "start_to_close_timeout exceeds schedule_to_close_timeout");
    }
    if (exceeds(to_start, to_close)) {
      return refuse("schedule_to_start_timeout",
                    "schedule_to_start_timeout exceeds schedule_to_close_timeout");
    }
    activity->set_schedule_to_close_ns(to_close);
    activity->set_schedule_to_start_ns(to_start);
    activity->set_start_to_close_ns(attempt);
    activity->set_heartbeat_ns(heartbeat);
    activity->set_lease_ns(context_.options.activity_lease);
    Members fields;
    fields.put("activity_execution_id", activity->activity_id());
    fields.put("activity_type", type);
    fields.put("activity_class", type);
    model::CancellationPolicy cancellation = model::CANCELLATION_UNSPECIFIED;
    if (!cancellation_policy(&cancellation, &fields)) return false;
    activity->set_cancellation_policy(cancellation);
    if (!worker_session(activity)) return false;
    if (!group(activity->mutable_step(), &fields)) return false;
    activity->mutable_step()->set_fields(fields.take());
    Members door;
    door.put("payload_codec", "avro");
    if (!arguments.empty()) door.put_raw("arguments", arguments);
    if (const auto* policy = member(command_, "retry_policy")) door.put("retry_policy", *policy);
    if (activity->priority().ByteSizeLong() > 0) {
      door.put("priority", priority_record(activity->priority()));
    }
    if (activity->has_session()) {
      door.put("worker_session", session_terms_record(shard::terms_from(activity->session())));
    }
    draft.set_door(door.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool start_timer() {
    std::optional<int64_t> delay;
    if (!seconds("delay_seconds", 0, &delay)) return false;
    if (!delay.has_value()) return refuse("delay_seconds", "delay_seconds is missing");
    model::Event draft;
    draft.set_kind(model::TIMER_STARTED);
    auto* timer = draft.mutable_timer_started();
    timer->set_timer_id(context_.make_id());
    timer->set_start_to_fire_ns(*delay * kSecond);
    Members fields;
    fields.put("delay_seconds", *delay);
    if (!group(timer->mutable_step(), &fields)) return false;
    timer->mutable_step()->set_fields(fields.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool start_child() {
    model::Event draft;
    draft.set_kind(model::CHILD_INITIATED);
    auto* child = draft.mutable_child_initiated();
    std::string type;
    std::string arguments;
    DurationNs execution = 0;
    DurationNs run = 0;
    if (!required("workflow_type", &type) || !payload("arguments", &arguments) ||
        !duration("execution_timeout_seconds", &execution) ||
        !duration("run_timeout_seconds", &run) || !priority(child->mutable_priority())) {
      return false;
    }
    if (run > 0 && execution > 0 && run > execution) {
      return refuse("run_timeout_seconds", "run_timeout_seconds exceeds execution_timeout_seconds");
    }
    std::string policy = text_of(command_, "parent_close_policy");
    if (policy.empty()) policy = "abandon";
    if (policy == "abandon") {
      child->set_parent_close_policy(model::PARENT_CLOSE_ABANDON);
    } else if (policy == "terminate") {
      child->set_parent_close_policy(model::PARENT_CLOSE_TERMINATE);
    } else if (policy == "request_cancel") {
      child->set_parent_close_policy(model::PARENT_CLOSE_REQUEST_CANCEL);
    } else if (policy == "request_cancellation") {
      child->set_parent_close_policy(model::PARENT_CLOSE_ASK_TO_STOP);
    } else {
      return refuse("parent_close_policy", absl::StrCat("there is no policy ", policy));
    }
    child->set_namespace_name(context_.namespace_name);
    child->set_namespace_id(context_.namespace_id);
    child->set_workflow_id(context_.make_id());
    child->set_promised_run_id(context_.make_id());
    child->set_workflow_type(type);
    if (const auto queue = text_of(command_, "queue"); !queue.empty()) {
      child->set_task_queue(engine_queue(queue));
    }
    child->set_execution_timeout_ns(execution);
    child->set_run_timeout_ns(run);
    child->set_task_timeout_ns(context_.options.workflow_lease);
    child->set_reuse_policy(kRejectDuplicate);
    if (member(command_, "retry_policy") != nullptr &&
        !retry_policy(child->mutable_retry_policy())) {
      return false;
    }
    Members fields;
    fields.put("parent_close_policy", policy);
    model::CancellationPolicy cancellation = model::CANCELLATION_UNSPECIFIED;
    if (!cancellation_policy(&cancellation, &fields)) return false;
    child->set_cancellation_policy(cancellation);
    if (!group(child->mutable_step(), &fields)) return false;
    child->mutable_step()->set_fields(fields.take());
    Members start;
    start.put("workflow_instance_id", child->workflow_id());
    if (!arguments.empty()) start.put_raw("input", arguments);
    start.raw(context_.declared(text_of(command_, "queue"), type));
    child->set_start_door(start.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool open_wait() {
    std::optional<int64_t> timeout;
    if (!seconds("timeout_seconds", 0, &timeout)) return false;
    model::Event draft;
    draft.set_kind(model::WAIT_OPENED);
    auto* wait = draft.mutable_wait();
    wait->set_wait_id(context_.make_id());
    wait->set_key(text_of(command_, "condition_key"));
    wait->set_fingerprint(text_of(command_, "condition_definition_fingerprint"));
    if (timeout.has_value()) wait->set_timeout_ns(*timeout * kSecond);
    Members fields;
    if (!group(wait->mutable_step(), &fields)) return false;
    if (wait->step().group_base() != 0 && !wait->step().selects()) {
      return refuse("parallel_group_base_sequence",
                    "a condition in a group that waits for all of it would never be judged; "
                    "conditions stand alone or in a selection");
    }
    wait->mutable_step()->set_fields(fields.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  model::Event marker(std::string_view name, std::string door) {
    model::Event draft;
    draft.set_kind(model::MARKER_RECORDED);
    draft.mutable_command_recorded()->set_name(std::string(name));
    draft.mutable_command_recorded()->mutable_step();
    draft.set_door(std::move(door));
    return draft;
  }

  bool side_effect() {
    const auto* result = member(command_, "result");
    if (result == nullptr) return refuse("result", "result is missing");
    Members door;
    if (result->is_string()) {
      const auto value = value_of_blob(to_std(result->as_string()));
      if (!value.ok()) return refuse("result", std::string(value.status().message()));
      door.put("result", *result);
    } else {
      std::string text;
      if (!payload("result", &text)) return false;
      door.put_raw("result", text);
    }
    door.put("payload_codec", "avro");
    drafts_.push_back(marker("SideEffectRecorded", door.take()));
    return true;
  }

  bool version_marker() {
    Members door;
    std::string change;
    if (!required("change_id", &change)) return false;
    door.put("change_id", change);
    for (const char* name : {"version", "min_supported", "max_supported"}) {
      const auto number = integer_of(command_, name);
      if (!number.has_value()) return refuse(name, absl::StrCat(name, " must be a whole number"));
      door.put(name, *number);
    }
    drafts_.push_back(marker("VersionMarkerRecorded", door.take()));
    return true;
  }

  bool search_attributes() {
    const auto* attributes = member(command_, "attributes");
    if (attributes == nullptr || !attributes->is_object()) {
      return refuse("attributes", "attributes must be an object");
    }
    model::Event draft;
    draft.set_kind(model::SEARCH_ATTRIBUTES_UPSERTED);
    draft.mutable_command_recorded()->mutable_step();
    for (const auto& entry : attributes->as_object()) {
      const auto fault = attribute_fault(entry.key(), entry.value(), context_.options);
      if (!fault.empty()) return refuse("attributes", fault);
      (*draft.mutable_command_recorded()->mutable_upserts())[to_std(entry.key())] =
          entry.value().is_null() ? "" : json::serialize(entry.value());
    }
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool memo() {
    std::string envelope;
    if (!payload("entries", &envelope)) return false;
    if (envelope.empty()) return refuse("entries", "entries is missing");
    const auto value = value_of_blob(text_of(command_.at("entries").as_object(), "blob"));
    const auto entries = value.ok() ? split_map(*value) : value.status();
    if (!entries.ok()) return refuse("entries", std::string(entries.status().message()));
    if (entries->size() > 100) return refuse("entries", "a memo has at most 100 entries");
    model::Event draft;
    draft.set_kind(model::PROPERTIES_MODIFIED);
    auto* recorded = draft.mutable_command_recorded();
    recorded->mutable_step();
    for (const auto& [key, bytes] : *entries) {
      if (bytes.size() > 10'240) return refuse("entries", absl::StrCat(key, " is too large"));
      const bool is_null = bytes == std::string_view("\0", 1);
      (*recorded->mutable_upserts())[key] = is_null ? "" : bytes;
    }
    Members door;
    door.put_raw("entries", envelope);
    draft.set_door(door.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  // Done by the worker itself: three events of one step tell the whole story.
  bool local_activity() {
    std::string type;
    std::string arguments;
    std::string result;
    std::string outcome;
    if (member(command_, "parallel_group_base_sequence") != nullptr) {
      return refuse("parallel_group_base_sequence",
                    "local activities in groups are not built in this server");
    }
    if (!required("activity_type", &type) || !required("outcome", &outcome) ||
        !payload("arguments", &arguments) || !payload("result", &result)) {
      return false;
    }
    Members common;
    const std::string id = context_.make_id();
    common.put("activity_execution_id", id);
    common.put("activity_type", type);
    common.put("activity_class", type);
    common.put("execution_mode", "local");
    common.put("local_activity", true);
    common.put("payload_codec", "avro");
    Members scheduled;
    scheduled.raw(common.text());
    if (!arguments.empty()) scheduled.put_raw("arguments", arguments);
    Members ended;
    ended.raw(common.text());
    if (const auto* attempts = member(command_, "attempts")) ended.put("attempts", *attempts);
    std::string_view ended_name = "ActivityCompleted";
    if (outcome == "completed") {
      if (!result.empty()) ended.put_raw("result", result);
    } else if (outcome == "failed" || outcome == "timed_out" || outcome == "cancelled") {
      ended.raw(failure_members(command_, outcome == "timed_out" ? "timeout" : "activity"));
      if (const auto* kind = member(command_, "timeout_kind")) ended.put("timeout_kind", *kind);
      ended_name = outcome == "failed"      ? "ActivityFailed"
                   : outcome == "timed_out" ? "ActivityTimedOut"
                                            : "ActivityCancelled";
    } else {
      return refuse("outcome", "outcome must be completed, failed, timed_out or cancelled");
    }
    drafts_.push_back(marker("ActivityScheduled", scheduled.take()));
    drafts_.push_back(marker("ActivityStarted", common.take()));
    drafts_.back().mutable_command_recorded()->mutable_step()->set_continues(true);
    drafts_.push_back(marker(ended_name, ended.take()));
    drafts_.back().mutable_command_recorded()->mutable_step()->set_continues(true);
    return true;
  }

  model::Event update_draft(model::EventKind kind, const std::string& id, std::string door) {
    model::Event draft;
    draft.set_kind(kind);
    draft.mutable_update_event()->set_update_id(id);
    draft.mutable_update_event()->set_outcome(door);
    draft.set_door(std::move(door));
    return draft;
  }

  bool complete_update() {
    std::string id;
    std::string result;
    if (!required("update_id", &id) || !payload("result", &result)) return false;
    Members door;
    door.put("payload_codec", "avro");
    if (!result.empty()) door.put_raw("result", result);
    drafts_.push_back(update_draft(model::UPDATE_APPLIED, id, ""));
    drafts_.push_back(update_draft(model::UPDATE_COMPLETED, id, door.take()));
    return true;
  }

  bool fail_update() {
    std::string id;
    std::string message;
    if (!required("update_id", &id) || !required("message", &message)) return false;
    drafts_.push_back(
        update_draft(model::UPDATE_COMPLETED, id, failure_members(command_, "application")));
    return true;
  }

  bool complete() {
    std::string result;
    auto given = result_text(member(command_, "result"));
    if (!given.ok()) return refuse("result", std::string(given.status().message()));
    result = *std::move(given);
    model::Event draft;
    draft.set_kind(model::WORKFLOW_COMPLETED);
    draft.mutable_workflow_closed();
    Members door;
    door.put("payload_codec", "avro");
    if (!result.empty()) door.put_raw("output", result);
    draft.set_door(door.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool fail() {
    std::string message;
    if (!required("message", &message)) return false;
    model::Event draft;
    draft.set_kind(model::WORKFLOW_FAILED);
    auto* failure = draft.mutable_workflow_closed()->mutable_failure();
    failure->set_kind(model::Failure::APPLICATION);
    failure->set_type(text_of(command_, "exception_type"));
    failure->set_non_retryable(is_true(command_, "non_retryable"));
    failure->set_message(message);
    Members door;
    door.raw(failure_members(command_, "application"));
    // Where the workflow could go on from.
    for (const char* name : {"failed_step_sequence", "failed_activity_execution_id"}) {
      if (const auto* given = member(command_, name)) door.put(name, *given);
    }
    draft.set_door(door.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  bool continue_as_new() {
    std::string arguments;
    if (!payload("arguments", &arguments)) return false;
    model::Event draft;
    draft.set_kind(model::WORKFLOW_CONTINUED_AS_NEW);
    auto* next = draft.mutable_workflow_closed()->mutable_next();
    next->set_workflow_type(text_of(command_, "workflow_type"));
    if (const auto queue = text_of(command_, "queue"); !queue.empty()) {
      next->set_task_queue(engine_queue(queue));
    }
    Members start;
    if (!arguments.empty()) start.put_raw("input", arguments);
    start.raw(context_.declared(text_of(command_, "queue"), next->workflow_type()));
    next->set_start_door(start.take());
    drafts_.push_back(std::move(draft));
    return true;
  }

  const json::object& command_;
  const size_t index_;
  const CommandContext& context_;
  std::vector<model::Event>& drafts_;
  CommandFault& fault_;
};

bool is_terminal(std::string_view type) {
  return type == "complete_workflow" || type == "fail_workflow" || type == "continue_as_new";
}

}  // namespace

std::string attribute_fault(std::string_view key, const json::value& value,
                            const Options& options) {
  const auto key_max = options.search_attribute_key_bytes_max;
  const auto value_max = options.search_attribute_value_bytes_max;
  const bool is_long =
      value.is_string() && static_cast<int64_t>(value.as_string().size()) > value_max;
  if (static_cast<int64_t>(key.size()) <= key_max && !is_long) return "";
  return absl::StrCat(std::string(key), " is longer than a key (", key_max, " bytes) or a value (",
                      value_max, " bytes) may be");
}

bool read_commands(const json::array& commands, const CommandContext& context,
                   std::vector<model::Event>* drafts, CommandFault* fault) {
  if (commands.empty()) {
    *fault = {"commands", "a completion has at least one command"};
    return false;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!commands[i].is_object()) {
      *fault = {absl::StrCat("commands.", i), "a command is an object"};
      return false;
    }
    const auto& command = commands[i].as_object();
    if (is_terminal(text_of(command, "type")) && i + 1 < commands.size()) {
      *fault = {absl::StrCat("commands.", i, ".type"), "what ends the run must be the last command",
                true};
      return false;
    }
    if (!CommandReader(command, i, context, drafts, fault).read()) return false;
  }
  return true;
}

}  // namespace fairlead::durable
