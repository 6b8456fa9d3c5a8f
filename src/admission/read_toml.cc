#include "absl/strings/str_cat.h"
#include "admission/fields.h"
#include "admission/read_settings.h"

namespace fairlead::admission {

namespace {

Written written(const toml::node& node) {
  if (const auto* number = node.as_integer()) return static_cast<double>(number->get());
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return Unfit{flag->get() ? "true" : "false"};
  if (node.is_array()) return Unfit{"a list"};
  if (node.is_table()) return Unfit{"a table"};
  return Unfit{"this"};
}

class SectionReader {
 public:
  SectionReader(std::string_view file_name, Settings* settings)
      : file_name_(file_name), settings_(settings) {}

  absl::Status read(const toml::table& section) {
    for (const auto& [name, node] : section) {
      if (auto status = read_top(name, node); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status error(const toml::source_region& at, std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_name_, ":", at.begin.line, ":",
                                                   at.begin.column, ": ", std::string(what)));
  }

  absl::Status read_top(const toml::key& name, const toml::node& node) {
    if (name.str() == "worker_stale_after_seconds") {
      return read_number(name, node, 1, 86'400, &settings_->worker_stale_after_s);
    }
    const bool is_known = name.str() == "queue_overrides" || name.str() == "query_tasks" ||
                          name.str() == name_of(TaskKind::kWorkflow) ||
                          name.str() == name_of(TaskKind::kActivity);
    if (!is_known) {
      return error(
          name.source(),
          unknown("key", absl::StrCat("admission.", std::string(name.str())),
                  {"admission.workflow_tasks", "admission.activity_tasks", "admission.query_tasks",
                   "admission.queue_overrides", "admission.worker_stale_after_seconds"}));
    }
    const auto* table = node.as_table();
    if (table == nullptr) {
      return error(node.source(),
                   absl::StrCat("admission.", std::string(name.str()), " wants a table"));
    }
    if (name.str() == "queue_overrides") return read_overrides(*table);
    if (name.str() == "query_tasks") return read_queries(*table);
    const auto kind =
        name.str() == name_of(TaskKind::kWorkflow) ? TaskKind::kWorkflow : TaskKind::kActivity;
    return read_fields(*table, is_default_field, unknown_default_field,
                       &settings_->defaults[at(kind)]);
  }

  absl::Status read_number(const toml::key& name, const toml::node& node, int64_t min, int64_t max,
                           std::optional<int64_t>* out) const {
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < min || number->get() > max) {
      return error(node.source(), absl::StrCat(std::string(name.str()), " wants an integer from ",
                                               min, " to ", max));
    }
    *out = number->get();
    return absl::OkStatus();
  }

  absl::Status read_queries(const toml::table& table) {
    for (const auto& [name, node] : table) {
      if (name.str() != "max_pending_per_queue") {
        return error(name.source(), unknown("field", name.str(), {"max_pending_per_queue"}));
      }
      auto status = read_number(name, node, 1, 10'000, &settings_->queries_pending_max);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status read_overrides(const toml::table& table) {
    for (const auto& [key, entry] : table) {
      if (!entry.is_table()) return error(entry.source(), "an override wants a table");
      for (const auto& [name, node] : *entry.as_table()) {
        const bool is_workflow = name.str() == name_of(TaskKind::kWorkflow);
        if (!is_workflow && name.str() != name_of(TaskKind::kActivity)) {
          return error(name.source(), unknown_kind(name.str()));
        }
        if (!node.is_table()) return error(node.source(), "an override wants a table");
        const auto kind = is_workflow ? TaskKind::kWorkflow : TaskKind::kActivity;
        auto& target = settings_->overrides[std::string(key.str())][at(kind)];
        auto status =
            read_fields(*node.as_table(), is_override_field, unknown_override_field, &target);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  template <typename Target>
  absl::Status read_fields(const toml::table& table, bool (*is_known)(std::string_view),
                           std::string (*complaint)(std::string_view), Target* target) const {
    for (const auto& [name, node] : table) {
      if (!is_known(name.str())) return error(name.source(), complaint(name.str()));
      // Whoever writes a file anew has no reason for a number in quotes or below zero.
      const bool is_number_field = name.str().starts_with("max_");
      if (is_number_field && (!node.is_integer() || node.as_integer()->get() < 0)) {
        return error(node.source(),
                     absl::StrCat(std::string(name.str()), " wants an integer from 0 to ", kCapMax,
                                  "; 0 is no cap"));
      }
      if (auto status = set_field(name.str(), written(node), target); !status.ok()) {
        return error(node.source(), absl::StrCat(std::string(name.str()), ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  const std::string file_name_;
  Settings* const settings_;
};

}  // namespace

absl::StatusOr<Settings> read_toml(const toml::table& section, std::string_view file_name) {
  Settings settings;
  if (auto status = SectionReader(file_name, &settings).read(section); !status.ok()) return status;
  return settings;
}

}  // namespace fairlead::admission
