#include "server/http_routes.h"

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace fairlead::server {

namespace {

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, to_absl(name))) return value;
  }
  return {};
}

void HttpRoutes::add_route(std::string_view method, std::string_view path, HttpHandler handler) {
  const bool is_tree = path.ends_with("/*");
  if (is_tree) path.remove_suffix(1);
  Methods& methods = (is_tree ? below_ : exact_)[to_absl(path)];
  methods.emplace_back(method, std::move(handler));
}

const HttpRoutes::Methods* HttpRoutes::find_path(std::string_view path) const {
  if (const auto found = exact_.find(to_absl(path)); found != exact_.end()) return &found->second;
  for (size_t slash = path.rfind('/'); slash != path.npos; slash = path.rfind('/', slash - 1)) {
    const auto found = below_.find(to_absl(path.substr(0, slash + 1)));
    if (found != below_.end()) return &found->second;
    if (slash == 0) break;
  }
  return nullptr;
}

HttpRoutes::Match HttpRoutes::find(std::string_view method, std::string_view path) const {
  Match match;
  const Methods* methods = find_path(path);
  if (methods == nullptr) return match;
  for (const auto& [name, handler] : *methods) {
    if (name == method) return {&handler, ""};
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += name;
  }
  return match;
}

void add_operator_routes(std::function<bool()> is_healthy,
                         std::shared_ptr<prometheus::Collectable> metrics, HttpRoutes* routes) {
  routes->add_route(
      "GET", "/healthz",
      [is_healthy = std::move(is_healthy)](std::shared_ptr<const HttpRequest>, HttpReply reply) {
        if (is_healthy()) return reply({200, "ok\n"});
        reply({503, "not serving: the server is starting or stopping\n"});
      });
  routes->add_route(
      "GET", "/metrics",
      [metrics = std::move(metrics)](std::shared_ptr<const HttpRequest>, HttpReply reply) {
        std::ostringstream text;
        prometheus::TextSerializer().Serialize(text, metrics->Collect());
        reply({200, std::move(text).str(), "text/plain; version=0.0.4; charset=utf-8"});
      });
}

}  // namespace fairlead::server
