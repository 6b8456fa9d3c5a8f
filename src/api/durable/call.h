#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "api/durable/door.h"
#include "api/durable/json.h"
#include "base/error.h"
#include "shard/namespaces.h"

namespace fairlead::durable {

inline constexpr char kProtocolVersion[] = "1.20";
inline constexpr char kControlVersion[] = "2";
inline constexpr char kProtocolHeader[] = "X-Durable-Workflow-Protocol-Version";
inline constexpr char kControlHeader[] = "X-Durable-Workflow-Control-Plane-Version";

enum class Plane { kOpen, kDiscovery, kControl, kWorker };

// Which operation of the control plane a route is: its answers carry a block about it that the
// command line tool checks.
struct Operation {
  std::string_view name;        // "signal"; empty: no block
  std::string_view name_field;  // "signal_name"
};

// One request on its way through the door: what it asks, and how it is answered. Answered once.
class Call {
 public:
  Call(std::shared_ptr<const Request> request, Respond respond)
      : request(std::move(request)), respond_(std::move(respond)) {}

  const std::shared_ptr<const Request> request;
  Plane plane = Plane::kOpen;
  Operation operation;
  std::vector<std::string> args;  // the path's variable parts, decoded
  json::object body;
  shard::NamespacePtr ns;
  std::vector<std::pair<std::string, std::string>> headers;  // of the answer
  bool may_compress = false;
  const json::object* capabilities = nullptr;  // of the server: the worker plane tells them always

  NamespaceNum ns_num() const { return NamespaceNum(ns->num()); }
  const std::string& arg(size_t index) const { return args.at(index); }
  // A parameter of the query, decoded; empty: none.
  std::string parameter(std::string_view name) const;

  // `raw` are members that are JSON text already.
  void answer(int status, json::object body, std::string_view raw = "");
  void refuse(int status, std::string_view reason, std::string_view message,
              json::object extra = {});
  // 422: the field and what is wrong with it.
  void invalid(std::string_view field, std::string_view text,
               std::string_view reason = "validation_failed");
  // 422: the run would have more of something than it may.
  void exceeds(std::string_view kind, int64_t current, int64_t limit, json::object extra);
  void exceeds(const ErrorDetail& refusal, json::object extra);
  // An error of the engine that no handler has a better answer for.
  void refuse(const absl::Status& status);
  bool is_answered() const { return is_answered_; }

 private:
  void send(int status, json::object body, std::string_view raw);

  Respond respond_;
  bool is_answered_ = false;
};
using CallPtr = std::shared_ptr<Call>;

// "%2F" and the like; a malformed escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace fairlead::durable
