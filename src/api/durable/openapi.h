#pragma once

#include <string>
#include <string_view>

#include "api/durable/call.h"

namespace fairlead::durable {

// What the description of the API says about a route, beside what the route says itself. Schemas
// and parameters are named; openapi_schemas*.cc have them.
struct RouteDoc {
  std::string_view summary;
  std::string_view body;        // the schema of the request's body; empty: none is read
  std::string_view answers;     // "201 RunStarted, 409, 422"; a status alone is an error
  std::string_view query = "";  // parameters: "page_size next_page_token"
};

// An OpenAPI 3.1 document that grows route by route.
class OpenApi {
 public:
  explicit OpenApi(const std::string& version);

  // `path` has its variable parts in braces.
  void add(std::string_view method, std::string_view path, Plane plane, std::string_view roles,
           const Operation& operation, const RouteDoc& doc);
  const json::object& document() const { return document_; }

 private:
  json::object document_;
};

// "worker", "operator" or "admin" for its letter in a route's roles.
std::string_view role_name(char role);

// JSON objects of schemas by their names.
extern const char kOperatorSchemas[];
extern const char kWorkerSchemas[];
extern const char kScheduleSchemas[];

// The components of the document: {"schemas": …, "parameters": …, "securitySchemes": …}
json::object openapi_components();

}  // namespace fairlead::durable
