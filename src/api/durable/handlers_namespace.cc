// Namespaces. They are the same as the other door's; names are small letters here.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

// Workflows that are counted before a namespace is deleted; of a larger one it is said that the
// count is not all.
constexpr size_t kCountedMax = 10'000;

json::object record_of(const model::NamespaceRow& row) {
  return {
      {"name", row.name()},
      {"description", row.description().empty() ? json::value() : json::value(row.description())},
      {"retention_days", row.retention_ns() / kDay},
      {"status", row.state() == model::NamespaceRow::REGISTERED ? "active" : "deprecated"},
      {"external_payload_storage", nullptr},
      {"created_at", nullptr},
      {"updated_at", nullptr}};
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

// False after a refusal.
bool read_fields(Call& call, std::string* description, int64_t* days) {
  *description = text_of(call.body, "description");
  if (description->size() > 1000) {
    call.invalid("description", "description must not be longer than 1000 bytes");
    return false;
  }
  if (member(call.body, "retention_days") == nullptr) return true;
  const auto given = integer_of(call.body, "retention_days");
  if (!given.has_value() || *given < 1 || *given > 365) {
    call.invalid("retention_days", "retention_days must be from 1 to 365");
    return false;
  }
  *days = *given;
  return true;
}

}  // namespace

void Door::Impl::list_namespaces(CallPtr call) {
  json::array namespaces;
  for (const auto& row : engine_.namespaces().list()) {
    if (row->state() != model::NamespaceRow::DELETED) namespaces.emplace_back(record_of(*row));
  }
  call->answer(200, {{"namespaces", std::move(namespaces)}});
}

void Door::Impl::create_namespace(CallPtr call) {
  const std::string name = absl::AsciiStrToLower(text_of(call->body, "name"));
  if (!is_name(name)) {
    return call->invalid("name", "name must be 1 to 128 of letters, digits and the signs . _ -");
  }
  model::NamespaceRow row;
  std::string description;
  int64_t days = options_.retention_days;
  if (!read_fields(*call, &description, &days)) return;
  row.set_name(name);
  row.set_description(description);
  row.set_retention_ns(days * kDay);
  engine_.namespaces().add(
      std::move(row), here<shard::NamespacePtr>([call](absl::StatusOr<shard::NamespacePtr> added) {
        if (added.ok()) return call->answer(201, record_of(**added));
        if (absl::IsAlreadyExists(added.status())) {
          return call->refuse(409, "namespace_already_exists",
                              std::string(added.status().message()));
        }
        call->refuse(added.status());
      }));
}

void Door::Impl::describe_namespace(CallPtr call) {
  const std::string name = absl::AsciiStrToLower(call->arg(0));
  const auto found = engine_.namespaces().find(name);
  if (!found.ok()) {
    return call->refuse(404, "namespace_not_found", absl::StrCat("there is no namespace ", name),
                        {{"namespace", name}});
  }
  call->answer(200, record_of(**found));
}

void Door::Impl::update_namespace(CallPtr call) {
  std::string description;
  int64_t days = 0;
  if (!read_fields(*call, &description, &days)) return;
  const bool has_description = call->body.contains("description");
  engine_.namespaces().update(
      absl::AsciiStrToLower(call->arg(0)),
      [description, days, has_description](model::NamespaceRow& row) {
        if (has_description) row.set_description(description);
        if (days > 0) row.set_retention_ns(days * kDay);
        return absl::OkStatus();
      },
      here<shard::NamespacePtr>([call](absl::StatusOr<shard::NamespacePtr> changed) {
        if (!changed.ok()) return call->refuse(changed.status());
        call->answer(200, record_of(**changed));
      }));
}

// The name is free at once. What was in the namespace goes in the background, so it is counted
// before.
void Door::Impl::delete_namespace(CallPtr call) {
  const std::string name = absl::AsciiStrToLower(call->arg(0));
  auto found = engine_.namespaces().find(name);
  if (!found.ok()) {
    return call->refuse(404, "namespace_not_found", absl::StrCat("there is no namespace ", name),
                        {{"namespace", name}});
  }
  call->ns = *std::move(found);
  const auto is_any = [](const model::RunState&) { return true; };
  find_runs(call, is_any, kCountedMax, [this, call, name](FoundRuns counted) {
    int64_t activities = 0;
    for (const auto& run : counted.runs) activities += run.durable().hosts_activity() ? 1 : 0;
    const auto workflows = static_cast<int64_t>(counted.runs.size()) - activities;
    const auto schedules = schedules_.count(call->ns_num());
    engine_.delete_namespace(
        name, here<shard::NamespacePtr>(
                  [this, call, name, workflows, activities, schedules,
                   is_all = counted.is_all](absl::StatusOr<shard::NamespacePtr> deleted) {
                    if (!deleted.ok()) return call->refuse(deleted.status());
                    auto record = record_of(**deleted);
                    record["name"] = name;
                    record["status"] = "deleted";
                    record["deleted"] = {{"workflows", workflows},
                                         {"activities", activities},
                                         {"schedules", schedules},
                                         {"workers", forget_workers(*call)},
                                         {"drained_builds", forget_builds(name)}};
                    record["deleted_is_complete"] = is_all;
                    call->answer(200, std::move(record));
                  }));
  });
}

}  // namespace fairlead::durable
