// Definitions of search attributes. They are advice: values are kept whether or not somebody has
// defined their names.

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

// DO NOT CHANGE: definitions are among the data of their namespace, under these names.
constexpr std::string_view kPrefix = "durable-workflow.search-attribute.";
constexpr std::array<std::pair<const char*, const char*>, 8> kSystem = {{
    {"WorkflowType", "keyword"},
    {"WorkflowId", "keyword"},
    {"RunId", "keyword"},
    {"Status", "keyword"},
    {"StartTime", "datetime"},
    {"CloseTime", "datetime"},
    {"TaskQueue", "keyword"},
    {"BuildId", "keyword"},
}};
constexpr std::array<std::string_view, 7> kTypes = {"keyword", "text",     "int",         "double",
                                                    "bool",    "datetime", "keyword_list"};

std::string row_key(const std::string& name) { return std::string(kPrefix) + name; }

bool is_system(std::string_view name) {
  return std::any_of(kSystem.begin(), kSystem.end(),
                     [&](const auto& each) { return each.first == name; });
}

bool is_name(const std::string& name, int64_t bytes_max) {
  return !name.empty() && static_cast<int64_t>(name.size()) <= bytes_max &&
         absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

}  // namespace

void Door::Impl::list_attributes(CallPtr call) {
  json::object system;
  for (const auto& [name, type] : kSystem) system[name] = type;
  json::object custom;
  const auto& data = call->ns->data();
  for (const auto& [name, type] : std::map<std::string, std::string>(data.begin(), data.end())) {
    if (name.starts_with(kPrefix)) custom[name.substr(kPrefix.size())] = type;
  }
  call->answer(
      200, {{"system_attributes", std::move(system)}, {"custom_attributes", std::move(custom)}});
}

void Door::Impl::define_attribute(CallPtr call) {
  const std::string name = text_of(call->body, "name");
  const std::string type = text_of(call->body, "type");
  const int64_t name_max = options_.search_attribute_key_bytes_max;
  if (!is_name(name, name_max)) {
    return call->invalid("name", absl::StrCat("name must begin with a letter and have 1 to ",
                                              name_max, " letters, digits and underscores"));
  }
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
    return call->invalid("type",
                         "type must be keyword, text, int, double, bool, datetime or keyword_list");
  }
  if (is_system(name)) {
    return call->refuse(409, "name_reserved", absl::StrCat(name, " is an attribute of the server"));
  }
  engine_.namespaces().update(
      call->ns->name(),
      [name, type, max = options_.search_attributes_max](model::NamespaceRow& row) {
        auto* data = row.mutable_data();
        if (data->contains(row_key(name))) {
          return absl::AlreadyExistsError(absl::StrCat(name, " is defined already"));
        }
        const auto defined = std::count_if(data->begin(), data->end(), [](const auto& each) {
          return each.first.starts_with(kPrefix);
        });
        if (defined >= max) {
          return absl::ResourceExhaustedError(
              absl::StrCat("a namespace has at most ", max, " search attributes"));
        }
        (*data)[row_key(name)] = type;
        return absl::OkStatus();
      },
      here<shard::NamespacePtr>([call, name, type](absl::StatusOr<shard::NamespacePtr> changed) {
        const std::string why(changed.status().message());
        if (absl::IsAlreadyExists(changed.status())) {
          return call->refuse(409, "attribute_already_exists", why);
        }
        if (absl::IsResourceExhausted(changed.status())) {
          return call->refuse(422, "search_attribute_limit_reached", why,
                              {{"errors", {{"name", json::array{why}}}},
                               {"validation_errors", {{"name", json::array{why}}}}});
        }
        if (!changed.ok()) return call->refuse(changed.status());
        call->answer(201, {{"name", name}, {"type", type}, {"outcome", "created"}});
      }));
}

void Door::Impl::remove_attribute(CallPtr call) {
  const std::string name = call->arg(0);
  if (is_system(name)) {
    return call->refuse(409, "system_attribute",
                        absl::StrCat(name, " is an attribute of the server"));
  }
  engine_.namespaces().update(
      call->ns->name(),
      [name](model::NamespaceRow& row) {
        if (row.mutable_data()->erase(row_key(name)) > 0) return absl::OkStatus();
        return absl::NotFoundError(absl::StrCat("no search attribute ", name, " is defined"));
      },
      here<shard::NamespacePtr>([call, name](absl::StatusOr<shard::NamespacePtr> changed) {
        if (absl::IsNotFound(changed.status())) {
          return call->refuse(404, "attribute_not_found", std::string(changed.status().message()));
        }
        if (!changed.ok()) return call->refuse(changed.status());
        call->answer(200, {{"name", name}, {"outcome", "deleted"}});
      }));
}

}  // namespace fairlead::durable
