#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"

namespace prometheus {
class Collectable;
}

namespace fairlead::server {

struct HttpRequest {
  std::string method;  // in capitals, as on the wire
  std::string path;    // without the query
  std::string query;   // what follows the question mark, still encoded
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // A handler that lets its client wait may set it before it returns. Called once, if the client
  // goes away unanswered; its answer would go nowhere.
  mutable std::function<void()> on_gone = nullptr;

  // The first header of that name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Called once, from any thread, now or later.
using HttpReply = absl::AnyInvocable<void(HttpResponse)>;
using HttpHandler = std::function<void(std::shared_ptr<const HttpRequest>, HttpReply)>;

// Which handler serves which method and path.
//
// A path that ends in "/*" stands for everything below it; an exact path goes before it, and of two
// such the longer one wins.
class HttpRoutes {
 public:
  void add_route(std::string_view method, std::string_view path, HttpHandler handler);

  struct Match {
    const HttpHandler* handler = nullptr;
    // The methods the path has, if it has any but not the one asked for: "GET, POST".
    std::string allowed;
  };
  Match find(std::string_view method, std::string_view path) const;

 private:
  using Methods = std::vector<std::pair<std::string, HttpHandler>>;
  const Methods* find_path(std::string_view path) const;

  absl::flat_hash_map<std::string, Methods> exact_;
  absl::flat_hash_map<std::string, Methods> below_;  // by the path with its last slash
};

// GET /healthz ("ok", or 503) and GET /metrics in Prometheus' text format.
void add_operator_routes(std::function<bool()> is_healthy,
                         std::shared_ptr<prometheus::Collectable> metrics, HttpRoutes* routes);

}  // namespace fairlead::server
