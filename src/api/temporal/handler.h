#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/temporal/answers.h"
#include "api/temporal/call.h"
#include "api/temporal/polls.h"
#include "api/temporal/service.h"
#include "api/temporal/workers.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/message.h"
#include "shard/engine.h"
#include "shard/namespaces.h"
#include "temporal/api/common/v1/message.pb.h"

// How every handler of this door is put together: the request is parsed on an arena, checked,
// turned into a question for the engine, and forgotten; the engine's answer is encoded wherever it
// arrives.
namespace fairlead::api {

using CallPtr = std::shared_ptr<Call>;

// What the handlers share.
struct Service {
  Service(shard::Engine& its_engine, const ServiceOptions& its_options)
      : engine(its_engine),
        options(its_options),
        hold{its_options.poll_hold, its_options.poll_spread},
        polls(its_options.polls_max, its_options.seed) {}

  // The namespace that a request names. Every handler starts here or with `read_token`: nothing
  // below accepts a namespace that did not come out of one of them.
  absl::StatusOr<shard::NamespacePtr> find_namespace(const std::string& name) const;
  // The same for calls that begin something new, which a deprecated namespace refuses.
  absl::StatusOr<shard::NamespacePtr> find_active_namespace(const std::string& name) const;

  // The token of a Respond call and the namespace it belongs to. `name` may be empty; if it is not,
  // it must name the same namespace.
  struct Bearer {
    shard::TaskToken token;
    shard::NamespacePtr ns;
  };
  absl::StatusOr<Bearer> read_token(const std::string& bytes, const std::string& name) const;

  // How long a caller that waits for news of a run is held.
  TimeNs wait_until(const Call& call) const;

  shard::Engine& engine;
  const ServiceOptions options;
  const PollHold hold;
  PollLimiter polls;
  Workers workers;
};

inline shard::RunRef run_ref(const shard::NamespacePtr& ns,
                             const temporal::api::common::v1::WorkflowExecution& execution) {
  return {NamespaceNum(ns->num()), execution.workflow_id(), execution.run_id()};
}

// The run of an activity: its workflow's, or its own if it has no workflow.
template <typename Request>
shard::RunRef activity_run(const shard::NamespacePtr& ns, const Request& request) {
  const NamespaceNum number(ns->num());
  if (!request.workflow_id().empty()) return {number, request.workflow_id(), request.run_id()};
  return {number, request.activity_id(), request.run_id(), model::STANDALONE};
}

inline NamespaceNum number_of(const shard::NamespacePtr& ns) { return NamespaceNum(ns->num()); }

void fail(Call& call, const absl::Status& status);
void succeed(Call& call, std::string body);

// The engine's answer as the call's: `encode` makes the response's bytes of it.
template <typename T, typename Encode>
shard::Reply<T> answer(CallPtr call, Encode encode) {
  return [call = std::move(call), encode = std::move(encode)](absl::StatusOr<T> result) mutable {
    if (!result.ok()) return fail(*call, result.status());
    succeed(*call, encode(*std::move(result)));
  };
}

// For responses without content.
shard::Reply<shard::Done> answer_done(CallPtr call);

// Enters handlers into the method table under the names that service descriptors give them.
class Registrar {
 public:
  // `names` are the services whose methods are to be found.
  Registrar(MethodTable& methods, std::shared_ptr<Service> service, std::vector<const char*> names)
      : methods_(methods), service_(std::move(service)), names_(std::move(names)) {}

  // A handler's status is its refusal, which becomes the answer. OK means that it has answered or
  // will.
  template <typename Request>
  void serve(absl::Status (*handle)(Service&, Request&, const CallPtr&)) {
    methods_.add(method_of(*Request::descriptor()), [service = service_, handle](CallPtr call) {
      char block[kArenaBlock];
      google::protobuf::Arena arena(block, sizeof(block));
      auto& request = *google::protobuf::Arena::CreateMessage<Request>(&arena);
      absl::Status refusal = parse(*call, request);
      if (refusal.ok()) refusal = handle(*service, request, call);
      if (!refusal.ok()) fail(*call, refusal);
    });
  }

 private:
  static constexpr size_t kArenaBlock = 4096;

  // The method whose request is of this type; there is exactly one for each.
  std::string method_of(const google::protobuf::Descriptor& request) const;
  // Fills `request` from the call's body, which is freed: a parked call has no use for it.
  static absl::Status parse(Call& call, google::protobuf::Message& request);

  MethodTable& methods_;
  std::shared_ptr<Service> service_;
  std::vector<const char*> names_;
};

void add_system_handlers(Registrar& registrar);
void add_namespace_handlers(Registrar& registrar);
void add_workflow_handlers(Registrar& registrar);
void add_start_handlers(Registrar& registrar);
void add_history_handlers(Registrar& registrar);
void add_query_handlers(Registrar& registrar);
void add_update_handlers(Registrar& registrar);
void add_combined_handlers(Registrar& registrar);
void add_poll_handlers(Registrar& registrar);
void add_task_handlers(Registrar& registrar);
void add_activity_handlers(Registrar& registrar);
void add_operate_handlers(Registrar& registrar);
void add_standalone_handlers(Registrar& registrar);
void add_options_handlers(Registrar& registrar);
void add_worker_handlers(Registrar& registrar);

}  // namespace fairlead::api
