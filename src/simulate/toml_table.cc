#include "simulate/toml_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/spelling.h"

namespace fairlead::simulate {

namespace {

std::string range(bool is_whole, double min, double max) {
  return absl::StrFormat("%s from %.15g to %.15g", is_whole ? "a whole number" : "a number", min,
                         max);
}

}  // namespace

absl::Status TomlReader::error(const toml::source_region& at, std::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_name_, ":", at.begin.line, ":", at.begin.column, ": ", std::string(what)));
}

absl::Status TomlReader::unwanted(const toml::node& node, std::string_view name,
                                  std::string_view wanted) const {
  return error(node.source(), absl::StrCat(std::string(name), " wants ", std::string(wanted)));
}

absl::Status TomlReader::parse(std::string_view text, toml::table* table) const {
  toml::parse_result parsed = toml::parse(text, file_name_);
  if (!parsed) return error(parsed.error().source(), parsed.error().description());
  *table = std::move(parsed).table();
  return absl::OkStatus();
}

absl::Status TomlReader::read(const toml::table& table, std::string_view section,
                              const std::vector<Field>& fields) const {
  for (const auto& [key, node] : table) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.name == key.str(); });
    if (field == fields.end()) {
      std::vector<std::string_view> names;
      names.reserve(fields.size());
      for (const auto& one : fields) names.push_back(one.name);
      const std::string meant(nearest(key.str(), names));
      return error(key.source(),
                   absl::StrCat("unknown key ", std::string(section), section.empty() ? "" : ".",
                                std::string(key.str()),
                                meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?")));
    }
    if (auto status = field->read(node); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TomlReader::read_number(const toml::node& node, std::string_view name, bool is_whole,
                                     double min, double max, double* out) const {
  const auto value = node.value<double>();
  // Written as "not inside" so that NaN, which compares false with everything, is refused too.
  const bool is_good = node.is_number() && value.has_value() && *value >= min && *value <= max &&
                       (!is_whole || node.is_integer());
  if (!is_good) return unwanted(node, name, range(is_whole, min, max));
  *out = *value;
  return absl::OkStatus();
}

TomlReader::Field TomlReader::time(std::string_view name, DurationNs* out, double min, double max,
                                   DurationNs unit) const {
  return {name, [this, name, out, min, max, unit](const toml::node& node) {
            double value = 0;
            auto status = read_number(node, name, false, min, max, &value);
            if (status.ok()) {
              *out = static_cast<DurationNs>(std::llround(value * static_cast<double>(unit)));
            }
            return status;
          }};
}

TomlReader::Field TomlReader::choice(std::string_view name, std::optional<std::string>* out,
                                     std::vector<std::string> choices) const {
  return {name, [this, name, out, choices = std::move(choices)](const toml::node& node) {
            const auto* text = node.as_string();
            if (text == nullptr ||
                std::find(choices.begin(), choices.end(), text->get()) == choices.end()) {
              return unwanted(node, name, absl::StrCat("one of ", absl::StrJoin(choices, ", ")));
            }
            *out = text->get();
            return absl::OkStatus();
          }};
}

TomlReader::Field TomlReader::list(std::string_view name,
                                   std::function<absl::Status(const toml::table&)> one) const {
  return {name, [this, name, one = std::move(one)](const toml::node& node) {
            const auto* array = node.as_array();
            if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
              return unwanted(node, name,
                              absl::StrCat("tables, each begun by [[", std::string(name), "]]"));
            }
            for (const auto& entry : *array) {
              if (auto status = one(*entry.as_table()); !status.ok()) return status;
            }
            return absl::OkStatus();
          }};
}

TomlReader::Field TomlReader::table(std::string_view name,
                                    std::function<absl::Status(const toml::table&)> one) const {
  return {name, [this, name, one = std::move(one)](const toml::node& node) {
            if (!node.is_table()) {
              return unwanted(node, name,
                              absl::StrCat("a table, begun by [", std::string(name), "]"));
            }
            return one(*node.as_table());
          }};
}

}  // namespace fairlead::simulate
