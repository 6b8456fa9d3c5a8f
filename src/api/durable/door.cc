#include "api/durable/door.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/desk.h"
#include "api/durable/gzip.h"
#include "api/durable/utf8.h"
#include "base/error.h"
#include "base/sha256.h"

namespace fairlead::durable {

namespace {

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

// Compares without telling by the time it takes where the first difference is.
bool equal_secrets(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  }
  return difference == 0 && !a.empty();
}

bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  const std::string media = absl::AsciiStrToLower(std::string(type));
  const auto trimmed = absl::StripAsciiWhitespace(media);
  return trimmed == "application/json" || absl::EndsWith(trimmed, "+json");
}

}  // namespace

Door::Door(Options options, Parts parts)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(parts))) {
  impl_->executor().post([impl = impl_] { impl->load_workers(); });
}

Door::~Door() = default;

void Door::handle(std::shared_ptr<const Request> request, Respond respond) {
  auto call = std::make_shared<Call>(std::move(request), std::move(respond));
  impl_->executor().post(
      [impl = impl_, call = std::move(call)]() mutable { impl->serve(std::move(call)); });
}

void Door::forget(std::shared_ptr<const Request> request) {
  impl_->executor().post([impl = impl_, request = std::move(request)] { impl->forget(*request); });
}

void Door::close() {
  impl_->executor().post([impl = impl_] { impl->close(); });
}

const Door::Impl::Route* Door::Impl::find_route(const Call& call, std::vector<std::string>* args,
                                                std::string* allowed) {
  std::string_view path = call.request->path;
  if (!path.starts_with("/api/")) return nullptr;
  path.remove_prefix(5);
  const std::vector<std::string> parts = absl::StrSplit(to_absl(path), '/');
  for (const auto& route : routes()) {
    const std::vector<absl::string_view> pattern = absl::StrSplit(to_absl(route.path), '/');
    if (pattern.size() != parts.size()) continue;
    std::vector<std::string> found;
    bool matches = true;
    for (size_t i = 0; i < parts.size() && matches; ++i) {
      if (absl::StartsWith(pattern[i], "{")) {
        found.push_back(percent_decoded(parts[i]));
        matches = !found.back().empty() && is_utf8(found.back());
      } else {
        matches = pattern[i] == parts[i];
      }
    }
    if (!matches) continue;
    if (route.method == call.request->method) {
      *args = std::move(found);
      return &route;
    }
    absl::StrAppend(allowed, allowed->empty() ? "" : ", ", to_absl(route.method));
  }
  return nullptr;
}

void Door::Impl::serve(CallPtr call) {
  std::string allowed;
  const Route* route = find_route(*call, &call->args, &allowed);
  const bool is_worker_path = absl::StartsWith(call->request->path, "/api/worker/");
  call->plane = route != nullptr ? route->plane : is_worker_path ? Plane::kWorker : Plane::kControl;
  if (route != nullptr) call->operation = route->operation;
  call->capabilities = &capabilities_;
  call->may_compress = options_.compression_enabled == "true";
  if (!check_body(*call, route) || !check_credentials(*call, route)) return;
  if (route == nullptr) {
    call->operation = {};
    if (allowed.empty()) {
      return call->refuse(404, "not_found",
                          absl::StrCat("nothing at ", printable(call->request->path)));
    }
    call->headers.emplace_back("Allow", allowed);
    return call->refuse(405, "method_not_allowed",
                        absl::StrCat(call->request->path, " takes ", allowed));
  }
  if (!check_version(*call) || !check_namespace(*call)) return;
  (this->*route->handler)(std::move(call));
}

bool Door::Impl::check_body(Call& call, const Route* route) {
  const auto& request = *call.request;
  if (static_cast<int64_t>(request.body.size()) > options_.payload_bytes_max) {
    call.refuse(413, "payload_too_large",
                absl::StrCat("the body is larger than ", options_.payload_bytes_max, " bytes"),
                {{"limit", options_.payload_bytes_max}});
    return false;
  }
  if (request.body.empty()) return true;
  if (!is_json_type(request.header("Content-Type"))) {
    call.refuse(415, "unsupported_media_type", "send application/json",
                {{"accepted_content_types", json::array{"application/json"}}});
    return false;
  }
  const std::string encoding =
      absl::AsciiStrToLower(std::string(request.header("Content-Encoding")));
  const bool is_packed = encoding == "gzip";
  if (!is_packed && !encoding.empty() && encoding != "identity") {
    call.refuse(415, "unsupported_content_encoding", "send the body as it is, or as gzip",
                {{"accepted_content_encodings", json::array{"gzip", "identity"}}});
    return false;
  }
  std::string unpacked;
  if (is_packed) {
    auto text = gunzipped(request.body, static_cast<size_t>(options_.payload_bytes_max));
    if (!text.ok()) {
      const bool is_large = absl::IsResourceExhausted(text.status());
      json::object extra;
      if (is_large) extra["limit"] = options_.payload_bytes_max;
      call.refuse(is_large ? 413 : 400, is_large ? "payload_too_large" : "malformed_encoding",
                  std::string(text.status().message()), std::move(extra));
      return false;
    }
    unpacked = *std::move(text);
  }
  std::string error;
  auto body = parse_json(is_packed ? unpacked : request.body, &error);
  if (!body.has_value() || !(body->is_object() || body->is_array())) {
    call.refuse(400, "malformed_json", "the body is not a JSON object",
                {{"json_error", error.empty() ? "not an object" : error}});
    return false;
  }
  // PHP clients send an empty object as an empty list.
  if (body->is_object()) call.body = std::move(body->as_object());
  return true;
}

bool Door::Impl::check_credentials(Call& call, const Route* route) {
  if (options_.auth_driver == "none" || (route != nullptr && route->plane == Plane::kOpen)) {
    return true;
  }
  const bool is_signed = options_.auth_driver == "signature";
  const auto& worker = is_signed ? options_.worker_signature_key : options_.worker_token;
  const auto& operators = is_signed ? options_.operator_signature_key : options_.operator_token;
  const auto& admin = is_signed ? options_.admin_signature_key : options_.admin_token;
  const auto& shared = is_signed ? options_.signature_key : options_.auth_token;
  const bool has_roles = !worker.empty() || !operators.empty() || !admin.empty();
  const bool has_shared = options_.auth_backward_compatible == "true" && !shared.empty();
  if (!has_roles && !has_shared) {
    call.refuse(500, "server_error",
                absl::StrCat(is_signed ? "no key is configured; set DW_SIGNATURE_KEY"
                                       : "no token is configured; set DW_AUTH_TOKEN",
                             ", or DW_AUTH_DRIVER=none for a server that only this machine "
                             "reaches"));
    return false;
  }
  std::string_view given = call.request->header(is_signed ? "X-Signature" : "Authorization");
  if (!is_signed) {
    if (!absl::StartsWithIgnoreCase(to_absl(given), "bearer ")) {
      call.refuse(401, "unauthorized", "this needs an Authorization header with a bearer token");
      return false;
    }
    given.remove_prefix(7);
  }
  // A signature is of the body as it came, before it was unpacked.
  const auto proves = [&](const std::string& secret) {
    if (secret.empty()) return false;
    return equal_secrets(given, is_signed ? hmac_sha256_hex(secret, call.request->body) : secret);
  };
  char role = 0;
  if (proves(worker)) role = 'w';
  if (proves(operators)) role = 'o';
  if (proves(admin)) role = 'a';
  const bool is_shared = role == 0 && has_shared && proves(shared);
  if (is_shared) role = 'a';
  if (role == 0) {
    call.refuse(401, "unauthorized",
                is_signed ? "X-Signature is not the body's with a key of this server"
                          : "the token is not one of this server's");
    return false;
  }
  const std::string_view roles = route != nullptr ? route->roles : "woa";
  // The one token of a server without roles opens every route.
  if ((is_shared && !has_roles) || roles.find(role) != std::string_view::npos) return true;
  json::array allowed;
  for (const char each : roles) allowed.emplace_back(to_json(role_name(each)));
  call.refuse(403, "forbidden", absl::StrCat("not for the role ", to_absl(role_name(role))),
              {{"role", to_json(role_name(role))}, {"allowed_roles", allowed}});
  return false;
}

bool Door::Impl::check_version(Call& call) {
  if (call.plane != Plane::kControl && call.plane != Plane::kWorker) return true;
  const bool is_worker = call.plane == Plane::kWorker;
  const auto given = printable(call.request->header(is_worker ? kProtocolHeader : kControlHeader));
  int minor = 0;
  const bool is_fine = is_worker
                           ? given.starts_with("1.") && absl::SimpleAtoi(given.substr(2), &minor) &&
                                 minor >= 0 && minor <= 20
                           : given == kControlVersion;
  if (is_fine) return true;
  const std::string supported = is_worker ? kProtocolVersion : kControlVersion;
  json::object extra{
      {"supported_version", supported},
      {"requested_version", nullptr},
      {"remediation",
       absl::StrCat("send ", is_worker ? kProtocolHeader : kControlHeader, ": ", supported)}};
  if (!given.empty()) extra["requested_version"] = given;
  const std::string what = is_worker ? "protocol_version" : "control_plane_version";
  call.refuse(400, absl::StrCat(given.empty() ? "missing_" : "unsupported_", what),
              given.empty() ? "the version header is missing"
                            : absl::StrCat("version ", given, " is not spoken here"),
              std::move(extra));
  return false;
}

bool Door::Impl::check_namespace(Call& call) {
  if (call.plane == Plane::kOpen || absl::StartsWith(call.request->path, "/api/namespaces")) {
    return true;
  }
  std::string name(call.request->header("X-Namespace"));
  if (name.empty()) name = call.parameter("namespace");
  if (name.empty()) name = options_.default_namespace;
  name = absl::AsciiStrToLower(printable(name));
  auto found = engine_.namespaces().find(name);
  if (found.ok()) {
    call.ns = *std::move(found);
    return true;
  }
  if (call.plane == Plane::kDiscovery) return true;
  call.refuse(404, "namespace_not_found", absl::StrCat("there is no namespace ", name),
              {{"namespace", name}, {"remediation", "create it with POST /api/namespaces"}});
  return false;
}

void Door::Impl::not_built(CallPtr call) {
  call->refuse(501, "not_implemented",
               absl::StrCat(call->request->method, " ", call->request->path,
                            " is part of the API but not built in this server"));
}

void Door::Impl::close() {
  is_closed_ = true;
  std::vector<CallPtr> waiting;
  for (auto& [key, receipt] : receipts_) {
    if (receipt.call != nullptr) waiting.push_back(std::move(receipt.call));
  }
  for (auto& [key, polls] : query_polls_) {
    for (auto& poll : polls) waiting.push_back(std::move(poll.call));
  }
  query_polls_.clear();
  close_validations(&waiting);
  for (auto& call : waiting) {
    call->answer(200, {{"task", nullptr}, {"poll_status", "draining"}});
  }
  for (auto& [id, query] : queries_) {
    query.caller->refuse(503, "query_task_queue_unavailable", "the server is stopping");
  }
  queries_.clear();
  pending_queries_.clear();
}

}  // namespace fairlead::durable
