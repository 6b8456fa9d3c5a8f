#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"

#define TOML_EXCEPTIONS 0
#include "toml++/toml.h"

namespace fairlead::simulate {

// Reads tables whose keys are known, and refuses everything else with its place.
class TomlReader {
 public:
  // A key of a table: its name and what to do with its value.
  struct Field {
    std::string_view name;
    std::function<absl::Status(const toml::node&)> read;
  };

  explicit TomlReader(std::string file_name) : file_name_(std::move(file_name)) {}

  absl::Status parse(std::string_view text, toml::table* table) const;
  // `section` is for messages; empty: the top of the file.
  absl::Status read(const toml::table& table, std::string_view section,
                    const std::vector<Field>& fields) const;

  // Fields of the usual kinds. What is outside the range is refused.
  template <typename Number>
  Field number(std::string_view name, Number* out, double min, double max) const {
    return {name, [this, name, out, min, max](const toml::node& node) {
              double value = 0;
              auto status =
                  read_number(node, name, std::is_integral_v<Value<Number>>, min, max, &value);
              if (status.ok()) *out = static_cast<Value<Number>>(value);
              return status;
            }};
  }
  // A number of seconds, or of `unit`s.
  Field time(std::string_view name, DurationNs* out, double min, double max,
             DurationNs unit = kSecond) const;
  // Into a bool or an optional one, and so for texts.
  template <typename Flag>
  Field flag(std::string_view name, Flag* out) const {
    return {name, [this, name, out](const toml::node& node) {
              if (!node.is_boolean()) return unwanted(node, name, "true or false");
              *out = node.as_boolean()->get();
              return absl::OkStatus();
            }};
  }
  template <typename Text>
  Field text(std::string_view name, Text* out) const {
    return {name, [this, name, out](const toml::node& node) {
              if (!node.is_string()) return unwanted(node, name, "a text");
              *out = node.as_string()->get();
              return absl::OkStatus();
            }};
  }
  Field choice(std::string_view name, std::optional<std::string>* out,
               std::vector<std::string> choices) const;
  // A list of tables, each read by `one`.
  Field list(std::string_view name, std::function<absl::Status(const toml::table&)> one) const;
  Field table(std::string_view name, std::function<absl::Status(const toml::table&)> one) const;

  absl::Status error(const toml::source_region& at, std::string_view what) const;

 private:
  template <typename T>
  struct Unwrapped {
    using Type = T;
  };
  template <typename T>
  struct Unwrapped<std::optional<T>> {
    using Type = T;
  };
  template <typename T>
  using Value = typename Unwrapped<T>::Type;

  absl::Status unwanted(const toml::node& node, std::string_view name,
                        std::string_view wanted) const;
  absl::Status read_number(const toml::node& node, std::string_view name, bool is_whole, double min,
                           double max, double* out) const;

  const std::string file_name_;
};

}  // namespace fairlead::simulate
