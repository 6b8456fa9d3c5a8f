#include "api/durable/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::durable {

namespace {

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

// Cuts off what stands before the next dot.
std::optional<std::string_view> cut(std::string_view* rest) {
  const size_t dot = rest->find('.');
  if (dot == rest->npos) return std::nullopt;
  const auto part = rest->substr(0, dot);
  rest->remove_prefix(dot + 1);
  return part;
}

}  // namespace

std::string engine_queue(std::string_view name) {
  return absl::StrCat(to_absl(kDurableQueuePrefix), to_absl(name));
}

std::string TaskName::text() const {
  return absl::StrCat(std::string(1, kind), "t.", number, ".", run_id, ".", workflow_id);
}

std::optional<TaskName> TaskName::parse(std::string_view text) {
  TaskName name;
  const auto kind = cut(&text);
  const auto number = cut(&text);
  const auto run_id = cut(&text);
  if (!kind || !number || !run_id || text.empty()) return std::nullopt;
  if (*kind != "wt" && *kind != "at") return std::nullopt;
  name.kind = (*kind)[0];
  if (!absl::SimpleAtoi(to_absl(*number), &name.number) || name.number < 1) return std::nullopt;
  name.run_id = *run_id;
  name.workflow_id = text;
  return name;
}

std::string attempt_name(std::string_view execution, int32_t attempt) {
  return absl::StrCat(to_absl(execution), ":", attempt);
}

std::optional<int32_t> attempt_of(std::string_view attempt_name, std::string_view execution) {
  int32_t attempt = 0;
  if (!attempt_name.starts_with(execution)) return std::nullopt;
  attempt_name.remove_prefix(execution.size());
  if (!attempt_name.starts_with(':')) return std::nullopt;
  attempt_name.remove_prefix(1);
  if (!absl::SimpleAtoi(to_absl(attempt_name), &attempt) || attempt < 1) return std::nullopt;
  return attempt;
}

bool is_workflow_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  });
}

}  // namespace fairlead::durable
