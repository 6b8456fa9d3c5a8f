#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "api/durable/options.h"
#include "base/executor.h"
#include "base/random.h"
#include "shard/durable_engine.h"
#include "shard/engine.h"
#include "shard/run_list.h"
#include "shard/schedule_engine.h"
#include "shard/schedule_list.h"
#include "shard/worker_rows.h"

namespace fairlead::durable {

struct Request {
  std::string method;
  std::string path;   // still encoded, without the query
  std::string query;  // still encoded
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  std::string_view header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Told once, from any thread.
using Respond = absl::AnyInvocable<void(Response)>;

// The whole door. All that it remembers belongs to `executor`, on which every request is handled.
class Door {
 public:
  struct Parts {
    shard::Engine* engine = nullptr;
    shard::DurableEngine* durable = nullptr;
    shard::WorkerRows* workers = nullptr;
    const shard::RunList* runs = nullptr;
    shard::ScheduleEngine* scheduling = nullptr;
    const shard::ScheduleList* schedules = nullptr;
    Executor* executor = nullptr;
    std::function<bool()> is_serving;
  };
  Door(Options options, Parts parts);
  ~Door();

  // From any thread.
  void handle(std::shared_ptr<const Request> request, Respond respond);
  // The client of a request that was not answered yet is gone. From any thread.
  void forget(std::shared_ptr<const Request> request);
  // The API's description: an OpenAPI document of every route, as the members of an object.
  static std::string openapi(const std::string& version);
  // Answers the queries and polls that wait here. Later ones are answered at once.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::durable
