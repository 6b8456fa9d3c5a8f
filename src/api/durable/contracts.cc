#include "api/durable/contracts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/avro.h"

namespace fairlead::durable {

namespace {

struct Kind {
  const char* name;
  const char* plural;
};
constexpr std::array<Kind, 3> kKinds = {{
    {"signal", "signals"},
    {"query", "queries"},
    {"update", "updates"},
}};

const json::array* list_member(const json::object& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_array() ? &found->as_array() : nullptr;
}

// Types as PHP names them, which is what workers of every language declare. One that is not known
// here is the worker's matter.
bool is_of(const json::value& value, std::string_view type) {
  if (type == "bool") return value.is_bool();
  if (type == "int") return value.is_int64() || value.is_uint64();
  if (type == "float") return value.is_number();
  if (type == "string" || type == "callable") return value.is_string();
  if (type == "array") return value.is_array() || value.is_object();
  if (type == "null") return value.is_null();
  return true;
}

bool fits(const json::value& value, const json::object& parameter) {
  const std::string type = text_of(parameter, "type");
  if (type.empty() || (value.is_null() && is_true(parameter, "allows_null"))) return true;
  const std::vector<std::string> types = absl::StrSplit(type, '|');
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& each) { return is_of(value, each); });
}

// The arguments that an envelope holds; nothing if they cannot be shown as JSON.
std::optional<json::array> arguments_of(std::string_view envelope) {
  if (envelope.empty()) return json::array();
  const auto parsed = parse_json(envelope);
  if (!parsed.has_value() || !parsed->is_object()) return std::nullopt;
  const auto bytes = value_of_blob(text_of(parsed->as_object(), "blob"));
  if (!bytes.ok()) return std::nullopt;
  auto value = from_value(*bytes);
  if (!value.ok() || !value->is_array()) return std::nullopt;
  return std::move(value->as_array());
}

// What is wrong with the arguments; empty: nothing.
std::string argument_fault(const json::array& parameters, const json::array& arguments) {
  size_t at = 0;
  for (const auto& each : parameters) {
    if (!each.is_object()) return "";
    const auto& parameter = each.as_object();
    const std::string name = text_of(parameter, "name");
    const bool is_variadic = is_true(parameter, "variadic");
    if (at >= arguments.size()) {
      const bool may_lack =
          is_variadic || is_true(parameter, "default_available") || !is_true(parameter, "required");
      if (may_lack) continue;
      return absl::StrCat("the argument ", name, " is missing");
    }
    const size_t until = is_variadic ? arguments.size() : at + 1;
    for (; at < until; ++at) {
      if (fits(arguments[at], parameter)) continue;
      return absl::StrCat("the argument ", name, " must be ", text_of(parameter, "type"));
    }
  }
  if (at >= arguments.size()) return "";
  return absl::StrCat("there are ", arguments.size(), " arguments, and ", parameters.size(),
                      " are taken");
}

}  // namespace

std::string declared_members(const json::object& contract) {
  Members out;
  for (const auto& kind : kKinds) {
    const auto* names = list_member(contract, kind.plural);
    if (names == nullptr) continue;
    out.put(absl::StrCat("declared_", kind.plural), *names);
    const std::string contracts = absl::StrCat(kind.name, "_contracts");
    if (const auto* given = list_member(contract, contracts)) {
      out.put(absl::StrCat("declared_", contracts), *given);
    }
  }
  if (const auto* judged = list_member(contract, "update_validators")) {
    out.put("declared_update_validators", *judged);
  }
  return out.take();
}

std::optional<ContractFault> contract_fault(const json::object& started, std::string_view kind,
                                            std::string_view name, std::string_view input) {
  const auto which = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Kind& each) { return each.name == kind; });
  if (which == kKinds.end()) return std::nullopt;
  const auto* names = list_member(started, absl::StrCat("declared_", which->plural));
  if (names == nullptr) return std::nullopt;
  const std::string word(kind);
  if (!has_text(*names, name)) {
    return ContractFault{
        404, kind == "query" ? "rejected_unknown_query" : absl::StrCat("unknown_", word),
        absl::StrCat("the workflow takes no ", word, " ", std::string(name))};
  }
  const auto* contracts = list_member(started, absl::StrCat("declared_", word, "_contracts"));
  if (contracts == nullptr) return std::nullopt;
  for (const auto& each : *contracts) {
    if (!each.is_object() || text_of(each.as_object(), "name") != name) continue;
    const auto* parameters = list_member(each.as_object(), "parameters");
    const auto arguments = arguments_of(input);
    if (parameters == nullptr || !arguments.has_value()) return std::nullopt;
    const auto fault = argument_fault(*parameters, *arguments);
    if (fault.empty()) return std::nullopt;
    return ContractFault{422, absl::StrCat("invalid_", word, "_arguments"), fault};
  }
  return std::nullopt;
}

}  // namespace fairlead::durable
