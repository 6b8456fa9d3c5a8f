#include "api/temporal/service.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "api/temporal/handler.h"
#include "api/temporal/queue_handlers.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/assert.h"
#include "base/error.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/stubs/logging.h"

namespace fairlead::api {

namespace {

// Kept back from the caller's deadline for the way of the answer.
constexpr DurationNs kWayBack = kSecond;

constexpr std::array<const char*, 2> kServices = {
    "temporal.api.workflowservice.v1.WorkflowService",
    "temporal.api.operatorservice.v1.OperatorService",
};

const google::protobuf::ServiceDescriptor& service_named(const char* name) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
  FL_ASSERT(service != nullptr, "the API's service descriptors are not linked in");
  return *service;
}

std::string full_name(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

// Some clients go on without a method if its absence is told in these words, and only then.
Handler not_built(const google::protobuf::MethodDescriptor& method) {
  auto text = absl::StrCat("unknown method ", method.name(), " for service ",
                           method.service()->full_name(), ": it is not implemented by this server");
  return
      [text = std::move(text)](const CallPtr& call) { fail(*call, errors::unimplemented(text)); };
}

}  // namespace

void fail(Call& call, const absl::Status& status) { call.reply(to_rpc_status(status), {}); }

void succeed(Call& call, std::string body) { call.reply(RpcStatus{}, std::move(body)); }

shard::Reply<shard::Done> answer_done(CallPtr call) {
  return answer<shard::Done>(std::move(call), [](shard::Done) { return std::string(); });
}

absl::StatusOr<shard::NamespacePtr> Service::find_namespace(const std::string& name) const {
  if (name.empty()) return errors::invalid_argument("Namespace is empty.");
  if (static_cast<int64_t>(name.size()) > options.limits.id_bytes) {
    return errors::invalid_argument("Namespace length exceeds limit.");
  }
  return engine.namespaces().find(name);
}

absl::StatusOr<shard::NamespacePtr> Service::find_active_namespace(const std::string& name) const {
  FL_TRY_ASSIGN(auto ns, find_namespace(name));
  if (ns->state() != model::NamespaceRow::REGISTERED) {
    return errors::namespace_invalid_state(
        name, "Namespace has invalid state: Deprecated. Must be Registered.");
  }
  return ns;
}

absl::StatusOr<Service::Bearer> Service::read_token(const std::string& bytes,
                                                    const std::string& name) const {
  if (bytes.empty()) return errors::invalid_argument("Task token not set on request.");
  Bearer bearer;
  FL_TRY_ASSIGN(bearer.token, decode_token(bytes));
  // A token passes through other hands; what it says of a run is read like any other request.
  if (!check_run_id(bearer.token.run_id).ok() || bearer.token.run_id.empty()) {
    return errors::invalid_argument("Error deserializing task token.");
  }
  if (name.empty()) {
    bearer.ns = engine.namespaces().find_by_num(bearer.token.ns.value());
    if (bearer.ns == nullptr) {
      return errors::not_found("the namespace of the task token does not exist any more");
    }
    return bearer;
  }
  FL_TRY_ASSIGN(bearer.ns, find_namespace(name));
  if (number_of(bearer.ns) != bearer.token.ns) {
    return errors::invalid_argument("Operation requested with a token from a different namespace.");
  }
  return bearer;
}

TimeNs Service::wait_until(const Call& call) const {
  const TimeNs now = engine.now();
  const TimeNs until = add_saturated(now, options.history_wait);
  if (call.deadline() == kNever) return until;
  return std::clamp(call.deadline() - kWayBack, now, until);
}

std::string Registrar::method_of(const google::protobuf::Descriptor& request) const {
  for (const char* name : names_) {
    const auto& service = service_named(name);
    for (int i = 0; i < service.method_count(); ++i) {
      if (service.method(i)->input_type() == &request) return full_name(*service.method(i));
    }
  }
  FL_ASSERT(false, "no method of the API takes this request");
  return {};
}

absl::Status Registrar::parse(Call& call, google::protobuf::Message& request) {
  const std::string_view body = call.body();
  const bool is_valid = request.ParseFromArray(body.data(), static_cast<int>(body.size()));
  call.release_body();
  if (is_valid) return absl::OkStatus();
  return errors::invalid_argument(
      absl::StrCat("the request is not a valid ", request.GetDescriptor()->full_name()));
}

void register_service(MethodTable& methods, shard::Engine& engine, const ServiceOptions& options) {
  // Protobuf writes a line for each message with broken text. What a client sends wrong is told to
  // the client; a log that anybody can fill is of no use to its owner.
  google::protobuf::SetLogHandler(nullptr);
  for (const char* name : kServices) {
    const auto& service = service_named(name);
    for (int i = 0; i < service.method_count(); ++i) {
      methods.add(full_name(*service.method(i)), not_built(*service.method(i)));
    }
  }
  // What is built takes the place of its refusal.
  Registrar registrar(methods, std::make_shared<Service>(engine, options),
                      {kServices.begin(), kServices.end()});
  add_system_handlers(registrar);
  add_namespace_handlers(registrar);
  add_workflow_handlers(registrar);
  add_start_handlers(registrar);
  add_history_handlers(registrar);
  add_query_handlers(registrar);
  add_update_handlers(registrar);
  add_combined_handlers(registrar);
  add_poll_handlers(registrar);
  add_task_handlers(registrar);
  add_activity_handlers(registrar);
  add_operate_handlers(registrar);
  add_standalone_handlers(registrar);
  add_options_handlers(registrar);
  add_worker_handlers(registrar);
  add_queue_handlers(registrar);
  add_queue_config_handlers(registrar);
}

}  // namespace fairlead::api
