#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admission/policy.h"

// The names of fields and what may stand in them, for every notation that settings are written in.
namespace fairlead::admission {

// A value of some notation. `Unfit` is one that no field takes, and says what it is: "a list".
struct Unfit {
  std::string what;
};
using Written = std::variant<std::monostate, double, std::string, Unfit>;

// Errors are InvalidArgument and leave it to the reader to say where.
absl::Status set_field(std::string_view name, const Written& value, KindOverrides* overrides);
absl::Status set_field(std::string_view name, const Written& value, Settings::Defaults* defaults);

bool is_override_field(std::string_view name);
bool is_default_field(std::string_view name);
std::string unknown_override_field(std::string_view name);
std::string unknown_default_field(std::string_view name);
std::string unknown_kind(std::string_view name);
std::string unknown(std::string_view what, std::string_view name,
                    const std::vector<std::string_view>& names);

// A number as a cap: cut to an integer, 0 (none) if it is negative or blank.
absl::StatusOr<int64_t> read_cap(const Written& value);

}  // namespace fairlead::admission
