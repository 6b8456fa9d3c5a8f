#include "server/durable_routes.h"

namespace fairlead::server {

void add_durable_routes(durable::Door* door, HttpRoutes* routes) {
  const HttpHandler handler = [door](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
    auto asked = std::make_shared<durable::Request>();
    asked->method = request->method;
    asked->path = request->path;
    asked->query = request->query;
    asked->body = request->body;
    asked->headers = request->headers;
    request->on_gone = [door, asked] { door->forget(asked); };
    door->handle(asked, [reply = std::move(reply)](durable::Response response) mutable {
      reply({response.status, std::move(response.body), "application/json",
             std::move(response.headers)});
    });
  };
  for (const char* method : {"GET", "POST", "PUT", "DELETE", "PATCH"}) {
    routes->add_route(method, "/api/*", handler);
  }
}

}  // namespace fairlead::server
