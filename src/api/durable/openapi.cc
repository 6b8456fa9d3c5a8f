#include "api/durable/openapi.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/assert.h"

namespace fairlead::durable {

namespace {

json::object ref(std::string_view kind, std::string_view name) {
  return {{"$ref", absl::StrCat("#/components/", std::string(kind), "/", std::string(name))}};
}

std::string_view meaning_of(int status) {
  switch (status) {
    case 200:
      return "Done";
    case 201:
      return "Made";
    case 202:
      return "Accepted; it goes on";
    case 400:
      return "Not readable, or of a version that is not spoken here";
    case 401:
      return "No credential, or one that is not known";
    case 403:
      return "Not for the caller's role";
    case 404:
      return "Not there";
    case 409:
      return "Not as things are";
    case 412:
      return "The worker is not registered";
    case 413:
      return "Larger than the server takes";
    case 415:
      return "Not JSON";
    case 422:
      return "A field is wrong; errors say which";
    case 429:
      return "Too much at once";
    case 500:
      return "The server has no credentials configured, or is at fault";
    case 501:
      return "Part of the API, but not built in this server";
    case 503:
      return "Not now";
    case 504:
      return "Nobody answered in time";
    default:
      FL_ASSERT(false, "an answer has a status that has a meaning");
      return "";
  }
}

// What every answer of a plane has around its own members.
json::object wrapped(json::object schema, Plane plane, const Operation& operation) {
  const std::string_view around = plane == Plane::kWorker   ? "WorkerAnswer"
                                  : !operation.name.empty() ? "ControlAnswer"
                                                            : "";
  if (around.empty()) return schema;
  return {{"allOf", json::array{std::move(schema), ref("schemas", around)}}};
}

json::object answer_of(int status, json::object schema, Plane plane, const Operation& operation) {
  json::object answer{
      {"description", to_json(meaning_of(status))},
      {"content",
       {{"application/json", {{"schema", wrapped(std::move(schema), plane, operation)}}}}}};
  if (plane == Plane::kWorker || plane == Plane::kControl) {
    const bool is_worker = plane == Plane::kWorker;
    const json::object header{
        {"required", true},
        {"schema",
         {{"type", "string"}, {"const", is_worker ? kProtocolVersion : kControlVersion}}}};
    answer["headers"] = {{is_worker ? kProtocolHeader : kControlHeader, header}};
  }
  return answer;
}

// What can go wrong before a request reaches its handler.
std::string_view common_errors(Plane plane) {
  switch (plane) {
    case Plane::kOpen:
      return "400, 413, 415";
    case Plane::kDiscovery:
      return "400, 401, 403, 413, 415, 500";
    default:
      return "400, 401, 403, 404, 413, 415, 500, 503";
  }
}

void add_answers(std::string_view answers, Plane plane, const Operation& operation,
                 json::object* responses) {
  for (const auto part : absl::StrSplit(absl::string_view(answers.data(), answers.size()), ", ")) {
    const std::pair<std::string, std::string> words = absl::StrSplit(part, absl::MaxSplits(' ', 1));
    int status = 0;
    FL_ASSERT(absl::SimpleAtoi(words.first, &status), "an answer begins with its status");
    const std::string name = !words.second.empty()     ? words.second
                             : status == 422           ? "ValidationError"
                             : plane == Plane::kWorker ? "WorkerError"
                                                       : "Error";
    (*responses)[words.first] = answer_of(status, ref("schemas", name), plane, operation);
  }
}

json::array parameters_of(std::string_view path, Plane plane, const RouteDoc& doc) {
  json::array parameters;
  for (const auto part : absl::StrSplit(absl::string_view(path.data(), path.size()), '/')) {
    if (part.empty() || part.front() != '{') continue;
    const std::string name(part.substr(1, part.size() - 2));
    parameters.push_back({{"name", name},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}, {"minLength", 1}}}});
  }
  if (plane == Plane::kControl) parameters.push_back(ref("parameters", "ControlVersion"));
  if (plane == Plane::kWorker) parameters.push_back(ref("parameters", "WorkerVersion"));
  const bool is_of_namespace = plane == Plane::kControl || plane == Plane::kWorker;
  if (is_of_namespace && !path.starts_with("namespaces")) {
    parameters.push_back(ref("parameters", "Namespace"));
  }
  for (const auto name : absl::StrSplit(absl::string_view(doc.query.data(), doc.query.size()), ' ',
                                        absl::SkipEmpty())) {
    parameters.push_back(ref("parameters", std::string_view(name.data(), name.size())));
  }
  return parameters;
}

}  // namespace

std::string_view role_name(char role) {
  return role == 'w' ? "worker" : role == 'o' ? "operator" : "admin";
}

OpenApi::OpenApi(const std::string& version) {
  document_["openapi"] = "3.1.0";
  document_["info"] = {{"title", "Fairlead: Durable Workflow's HTTP API"},
                       {"version", version},
                       {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}};
  document_["paths"] = json::object();
  document_["components"] = openapi_components();
}

void OpenApi::add(std::string_view method, std::string_view path, Plane plane,
                  std::string_view roles, const Operation& operation, const RouteDoc& doc) {
  json::object responses;
  add_answers(common_errors(plane), plane, operation, &responses);
  add_answers(doc.answers, plane, operation, &responses);
  json::array allowed;
  for (const char role : roles) allowed.emplace_back(to_json(role_name(role)));
  const std::string lower = absl::AsciiStrToLower(std::string(method));
  const bool is_built = !responses.contains("501");
  json::object entry{{"operationId", absl::StrCat(lower, " /", std::string(path))},
                     {"summary", to_json(doc.summary)},
                     {"tags", json::array{!is_built                  ? "not built"
                                          : plane == Plane::kWorker  ? "worker plane"
                                          : plane == Plane::kControl ? "control plane"
                                                                     : "discovery"}},
                     {"parameters", parameters_of(path, plane, doc)},
                     {"responses", std::move(responses)},
                     {"x-roles", std::move(allowed)}};
  if (plane != Plane::kOpen) {
    entry["security"] = {{{"bearer", json::array()}}, {{"signature", json::array()}}};
  }
  if (!doc.body.empty()) {
    // An empty body stands for an empty object.
    entry["requestBody"] = {
        {"content", {{"application/json", {{"schema", ref("schemas", doc.body)}}}}}};
  }
  auto& paths = document_["paths"].as_object();
  auto& item = paths[absl::StrCat("/api/", std::string(path))];
  if (!item.is_object()) item.emplace_object();
  FL_ASSERT(!item.as_object().contains(lower), "a route is described once");
  item.as_object()[lower] = std::move(entry);
}

}  // namespace fairlead::durable
