#include "admission/payload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::admission {

namespace {

class JsonObject {
 public:
  void number(std::string_view name, int64_t value) { raw(name, absl::StrCat(value)); }
  void number(std::string_view name, std::optional<int64_t> value) {
    raw(name, value.has_value() ? absl::StrCat(*value) : "null");
  }
  void boolean(std::string_view name, bool value) { raw(name, value ? "true" : "false"); }
  void text(std::string_view name, std::string_view value) { raw(name, quoted(value)); }
  void raw(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ',';
    fields_.append(quoted(name)).append(":").append(value);
  }
  std::string str() const { return absl::StrCat("{", fields_, "}"); }

 private:
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char byte : text) {
      if (byte == '"' || byte == '\\') {
        out.append({'\\', byte});
      } else if (static_cast<uint8_t>(byte) < 0x20) {
        absl::StrAppendFormat(&out, "\\u%04x", static_cast<uint8_t>(byte));
      } else {
        out += byte;
      }
    }
    return out + '"';
  }

  std::string fields_;
};

// How the fields of a budget are called: its cap, its count, what remains.
struct Names {
  std::string_view max;
  std::string_view used;
  std::string_view remaining;
};
constexpr std::array<Names, kBudgets> kNames = {{
    {"server_max_active_leases_per_queue", "server_active_lease_count",
     "server_remaining_active_lease_capacity"},
    {"server_max_active_leases_per_namespace", "server_namespace_active_lease_count",
     "server_remaining_namespace_active_lease_capacity"},
    {"server_max_dispatches_per_minute", "server_dispatch_count_this_minute",
     "server_remaining_dispatch_capacity"},
    {"server_max_dispatches_per_minute_per_namespace",
     "server_namespace_dispatch_count_this_minute", "server_remaining_namespace_dispatch_capacity"},
    {"server_max_dispatches_per_minute_per_budget_group",
     "server_budget_group_dispatch_count_this_minute",
     "server_remaining_budget_group_dispatch_capacity"},
}};

bool is_full(const BudgetView& budget) {
  return budget.max.has_value() && budget.used >= *budget.max;
}

// The first that holds.
Status status_of(const TaskSection& section) {
  if (section.is_lock_required && !section.is_lock_supported) return Status::kUnavailable;
  if (std::any_of(section.budgets.begin(), section.budgets.end(), is_full)) {
    return Status::kThrottled;
  }
  if (section.active_workers == 0) return Status::kNoActiveWorkers;
  if (section.configured_slots <= 0) return Status::kNoSlots;
  if (section.leased >= section.configured_slots) return Status::kSaturated;
  return Status::kAccepting;
}

std::string section_json(const TaskSection& section) {
  JsonObject json;
  json.text("status", name_of(section.status));
  json.number("active_worker_count", section.active_workers);
  json.number("configured_slot_count", section.configured_slots);
  json.number("leased_count", section.leased);
  json.number("ready_count", section.ready);
  json.number("available_slot_count", section.available_slots);
  for (const Budget budget : kAllBudgets) {
    if (budget == Budget::kGroupRate) {
      if (section.group.has_value()) {
        json.text("server_dispatch_budget_group", *section.group);
      } else {
        json.raw("server_dispatch_budget_group", "null");
      }
    }
    const auto& names = kNames[at(budget)];
    const auto& view = section.budgets[at(budget)];
    json.number(names.max, view.max);
    json.number(names.used, view.used);
    json.number(names.remaining, view.remaining);
  }
  json.boolean("server_lock_required", section.is_lock_required);
  json.boolean("server_lock_supported", section.is_lock_supported);
  json.text("budget_source", absl::StrCat("worker_registration.max_concurrent_",
                                          std::string(name_of(section.kind))));
  json.text("server_budget_source", section.server_budget_source);
  return json.str();
}

std::string section_json(const QuerySection& section) {
  JsonObject json;
  json.text("status", name_of(section.status));
  json.number("max_pending_per_queue", section.pending_max);
  json.number("approximate_pending_count", section.pending);
  json.number("remaining_pending_capacity", section.remaining);
  json.boolean("lock_required", true);
  json.boolean("lock_supported", section.is_lock_supported);
  json.text("budget_source", "server.query_tasks.max_pending_per_queue");
  return json.str();
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::kAccepting:
      return "accepting";
    case Status::kThrottled:
      return "throttled";
    case Status::kSaturated:
      return "saturated";
    case Status::kNoSlots:
      return "no_slots";
    case Status::kNoActiveWorkers:
      return "no_active_workers";
    case Status::kUnavailable:
      return "unavailable";
    case Status::kFull:
      return "full";
  }
  return "";
}

TaskSection make_section(const TaskFacts& facts) {
  TaskSection section;
  section.kind = facts.caps.kind;
  section.active_workers = facts.slots.active_workers;
  section.configured_slots = facts.slots.configured;
  section.leased = facts.usage.leases;
  section.ready = facts.ready;
  section.available_slots = std::max<int64_t>(0, section.configured_slots - section.leased);
  if (!facts.caps.group.empty()) section.group = facts.caps.group;
  section.is_lock_required = facts.caps.is_any();
  section.is_lock_supported = facts.is_available;
  section.server_budget_source = facts.caps.source();

  const bool is_known = facts.is_available || !section.is_lock_required;
  const std::array<int64_t, kBudgets> used = {
      std::max<int64_t>(0, facts.usage.leases - facts.expired),
      std::max<int64_t>(0, facts.usage.namespace_leases - facts.expired_namespace),
      facts.usage.dispatches,
      facts.usage.namespace_dispatches,
      facts.usage.group_dispatches,
  };
  for (const Budget budget : kAllBudgets) {
    auto& view = section.budgets[at(budget)];
    if (is_known) view.used = used[at(budget)];
    if (!facts.caps.has(budget)) continue;
    view.max = facts.caps[budget].max;
    if (is_known) view.remaining = std::max<int64_t>(0, *view.max - view.used);
  }
  section.status = status_of(section);
  return section;
}

QuerySection make_section(int64_t pending_max, int64_t pending, bool is_available) {
  QuerySection section;
  section.pending_max = pending_max;
  section.pending = pending;
  section.remaining = std::max<int64_t>(0, pending_max - pending);
  section.is_lock_supported = is_available;
  section.status = !is_available            ? Status::kUnavailable
                   : pending >= pending_max ? Status::kFull
                                            : Status::kAccepting;
  return section;
}

std::string to_json(const Payload& payload) {
  JsonObject json;
  json.raw("workflow_tasks", section_json(payload.workflow_tasks));
  json.raw("activity_tasks", section_json(payload.activity_tasks));
  json.raw("query_tasks", section_json(payload.query_tasks));
  return json.str();
}

}  // namespace fairlead::admission
