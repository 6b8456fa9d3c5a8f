#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "api/fairlead/requests.h"
#include "api/fairlead/task_queue_service.h"
#include "api/fairlead/views.h"
#include "api/temporal/handler.h"
#include "api/temporal/queue_handlers.h"
#include "api/temporal/try.h"

namespace fairlead::api::queues {

namespace {

using errors::invalid_argument;
using model::QueueRules;

// The queue puts the number of its next task in the place of this one.
constexpr uint64_t kDrainFromNow = std::numeric_limits<uint64_t>::max();

using Change = absl::AnyInvocable<absl::Status(QueueRules&, TimeNs)>;

// The engine calls `change` where the queue lives, long after the request is gone.
template <typename Response>
absl::Status change_queue(Service& service, shard::QueueRef queue, Change change,
                          const CallPtr& call) {
  service.engine.change_rules({std::move(queue), std::move(change)},
                              answer<QueueRules>(call, [](const QueueRules& rules) {
                                Response response;
                                *response.mutable_config() = config_of(rules);
                                return response.SerializeAsString();
                              }));
  return absl::OkStatus();
}

template <typename Response>
absl::Status change_key(Service& service, shard::QueueRef queue, const std::string& key,
                        Change change, const CallPtr& call) {
  service.engine.change_rules({std::move(queue), std::move(change)},
                              answer<QueueRules>(call, [key](const QueueRules& rules) {
                                Response response;
                                *response.mutable_config() = key_config_of(rules, key);
                                return response.SerializeAsString();
                              }));
  return absl::OkStatus();
}

// ---- a queue's rules
// -----------------------------------------------------------------------------

absl::Status check_unset(bool value, std::string_view field) {
  if (value) return absl::OkStatus();
  return invalid_argument(
      absl::StrCat(std::string(field), " is false; leave it out to change nothing"));
}

// `what` is how the refusal for workflow queues calls it, in the words of the other door.
absl::Status check_rate_change(const v1::RateChange& change, std::string_view field,
                               model::TaskKind kind, std::string_view what) {
  FL_TRY(check_text(change.reason(), std::string(field) + ".reason"));
  switch (change.change_case()) {
    case v1::RateChange::kPerSecond:
      if (kind == model::WORKFLOW_TASK) {
        return invalid_argument(absl::StrCat("Setting ", std::string(what),
                                             " on workflow task queues is not allowed."));
      }
      return check_rate(change.per_second(), field);
    case v1::RateChange::kUnset:
      return check_unset(change.unset(), std::string(field) + ".unset");
    case v1::RateChange::CHANGE_NOT_SET:
      return invalid_argument(absl::StrCat(std::string(field), " has neither a limit nor unset"));
  }
  return absl::OkStatus();
}

absl::Status check_weights(const v1::SetTaskQueueRequest& request, bool allows_unkeyed) {
  const int named = request.weights().size() + request.unset_weights_size();
  if (named > kWeightsMax) {
    return invalid_argument(absl::StrCat("too many fairness weight overrides in request: got ",
                                         named, ", maximum ", kWeightsMax));
  }
  for (const auto& [key, weight] : request.weights())
    FL_TRY(check_weight(weight, key, allows_unkeyed));
  for (const auto& key : request.unset_weights()) {
    FL_TRY(check_weight(1, key, allows_unkeyed));
    if (request.weights().contains(key)) {
      return invalid_argument(absl::StrCat("fairness weight override key \"", key,
                                           "\" present in both set and unset lists"));
    }
  }
  return absl::OkStatus();
}

absl::Status check_choice(bool is_known, int value, std::string_view field) {
  if (is_known) return absl::OkStatus();
  return invalid_argument(absl::StrCat(std::string(field), " ", value, " is unknown"));
}

absl::Status check(const v1::SetTaskQueueRequest& request, model::TaskKind kind,
                   bool allows_unkeyed) {
  using Request = v1::SetTaskQueueRequest;
  FL_TRY(check_text(request.identity(), "identity"));
  if (request.has_queue_rate()) {
    FL_TRY(check_rate_change(request.queue_rate(), "queue_rate", kind, "rate limit"));
  }
  if (request.has_key_rate_default()) {
    FL_TRY(check_rate_change(request.key_rate_default(), "key_rate_default", kind,
                             "fairness key rate limit"));
  }
  if (request.running_max_change_case() == Request::kUnsetRunningMax) {
    FL_TRY(check_unset(request.unset_running_max(), "unset_running_max"));
  }
  if (request.running_max_per_key_change_case() == Request::kUnsetRunningMaxPerKey) {
    FL_TRY(check_unset(request.unset_running_max_per_key(), "unset_running_max_per_key"));
  }
  FL_TRY(check_choice(v1::Fairness_IsValid(request.fairness()), request.fairness(), "fairness"));
  FL_TRY(check_choice(v1::FirstTurn_IsValid(request.first_turn()), request.first_turn(),
                      "first_turn"));
  FL_TRY(check_choice(v1::Transition_IsValid(request.transition()), request.transition(),
                      "transition"));
  FL_TRY(check_choice(v1::Basis_IsValid(request.basis()), request.basis(), "basis"));
  FL_TRY(check_choice(v1::PollerOrder_IsValid(request.poller_order()), request.poller_order(),
                      "poller_order"));
  return check_weights(request, allows_unkeyed);
}

void apply(const v1::RateChange& change, const std::string& identity, TimeNs now,
           QueueRules::Limit& limit) {
  limit.Clear();
  if (change.has_per_second()) limit.set_per_second(change.per_second());
  limit.set_reason(change.reason());
  limit.set_identity(identity);
  limit.set_updated_ns(now);
}

// The first that may refuse, before anything is changed.
absl::Status apply_weights(const v1::SetTaskQueueRequest& asked, QueueRules& rules) {
  auto weights = rules.weights();
  if (asked.unset_all_weights()) weights.clear();
  for (const auto& key : asked.unset_weights()) weights.erase(key);
  for (const auto& [key, weight] : asked.weights()) weights[key] = weight;
  if (weights.size() > static_cast<size_t>(kWeightsMax)) {
    return errors::failed_precondition(absl::StrCat("the queue would have ", weights.size(),
                                                    " fairness weight overrides; ", kWeightsMax,
                                                    " are allowed, so unset some"));
  }
  *rules.mutable_weights() = std::move(weights);
  return absl::OkStatus();
}

absl::Status apply(const v1::SetTaskQueueRequest& asked, QueueRules& rules, TimeNs now) {
  using Request = v1::SetTaskQueueRequest;
  FL_TRY(apply_weights(asked, rules));
  if (asked.has_queue_rate()) {
    apply(asked.queue_rate(), asked.identity(), now, *rules.mutable_queue_limit());
  }
  if (asked.has_key_rate_default()) {
    apply(asked.key_rate_default(), asked.identity(), now, *rules.mutable_key_limit());
  }
  if (asked.has_running_max()) rules.set_running_max(asked.running_max());
  if (asked.running_max_change_case() == Request::kUnsetRunningMax) rules.clear_running_max();
  if (asked.has_running_max_per_key()) rules.set_running_max_per_key(asked.running_max_per_key());
  if (asked.running_max_per_key_change_case() == Request::kUnsetRunningMaxPerKey) {
    rules.clear_running_max_per_key();
  }
  // "Leave it as it is" stands before the model's words; views.cc makes sure that the rest fits.
  if (asked.fairness() != 0) {
    rules.set_fairness(static_cast<QueueRules::Switch>(asked.fairness() - 1));
  }
  if (asked.first_turn() != 0) {
    rules.set_first_turn(static_cast<QueueRules::FirstTurn>(asked.first_turn() - 1));
  }
  if (asked.transition() != 0) {
    rules.set_transition(static_cast<QueueRules::Transition>(asked.transition() - 1));
  }
  if (asked.basis() != 0) rules.set_basis(static_cast<QueueRules::Basis>(asked.basis() - 1));
  if (asked.poller_order() != 0) {
    rules.set_poller_order(static_cast<QueueRules::PollerOrder>(asked.poller_order() - 1));
  }
  return absl::OkStatus();
}

absl::Status set_task_queue(Service& service, v1::SetTaskQueueRequest& request,
                            const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.task_queue().namespace_()));
  FL_TRY(check(request, queue.kind, allows_override_of_unkeyed(*ns)));
  auto change = [asked = v1::SetTaskQueueRequest(request)](QueueRules& rules, TimeNs now) {
    return apply(asked, rules, now);
  };
  return change_queue<v1::SetTaskQueueResponse>(service, std::move(queue), std::move(change), call);
}

// A pause that is repeated has a new reason, but it began when it began.
void pause(const std::string& reason, const std::string& identity, bool is_paused, TimeNs now,
           QueueRules::Pause& out) {
  out.set_reason(reason);
  out.set_identity(identity);
  if (!is_paused) out.set_since_ns(now);
}

absl::Status pause_task_queue(Service& service, v1::PauseTaskQueueRequest& request,
                              const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY(check_text(request.reason(), "reason"));
  FL_TRY(check_text(request.identity(), "identity"));
  auto change = [reason = request.reason(), identity = request.identity()](QueueRules& rules,
                                                                           TimeNs now) {
    const bool is_paused = rules.has_pause();
    pause(reason, identity, is_paused, now, *rules.mutable_pause());
    return absl::OkStatus();
  };
  return change_queue<v1::PauseTaskQueueResponse>(service, std::move(queue), std::move(change),
                                                  call);
}

absl::Status resume_task_queue(Service& service, v1::ResumeTaskQueueRequest& request,
                               const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  auto change = [](QueueRules& rules, TimeNs) {
    rules.clear_pause();
    return absl::OkStatus();
  };
  return change_queue<v1::ResumeTaskQueueResponse>(service, std::move(queue), change, call);
}

// ---- a key's rules
// -------------------------------------------------------------------------------

// Gives `edit` the rule of a key, which exists only as long as it says something.
absl::Status edit_rule(QueueRules& rules, const std::string& key,
                       absl::FunctionRef<void(QueueRules::KeyRule&)> edit) {
  auto& keys = *rules.mutable_keys();
  const auto found = keys.find(key);
  const bool is_new = found == keys.end();
  QueueRules::KeyRule rule = is_new ? QueueRules::KeyRule() : found->second;
  edit(rule);
  if (rule.ByteSizeLong() == 0) {
    keys.erase(key);
    return absl::OkStatus();
  }
  if (is_new && keys.size() >= kKeyRulesMax) {
    return errors::failed_precondition(
        absl::StrCat("the queue has rules for ", keys.size(),
                     " keys, as many as there may be; resume or unset some"));
  }
  keys[key] = std::move(rule);
  return absl::OkStatus();
}

absl::Status check(const v1::SetKeyRequest& request, model::TaskKind kind, bool allows_unkeyed) {
  using Request = v1::SetKeyRequest;
  if (request.has_weight()) FL_TRY(check_weight(request.weight(), request.key(), allows_unkeyed));
  if (request.weight_change_case() == Request::kUnsetWeight) {
    FL_TRY(check_unset(request.unset_weight(), "unset_weight"));
  }
  if (request.running_max_change_case() == Request::kUnsetRunningMax) {
    FL_TRY(check_unset(request.unset_running_max(), "unset_running_max"));
  }
  if (request.has_rate_per_second()) {
    if (kind == model::WORKFLOW_TASK) {
      return invalid_argument(
          "Setting fairness key rate limit on workflow task queues is not allowed.");
    }
    FL_TRY(check_rate(request.rate_per_second(), "rate_per_second"));
  }
  if (request.rate_change_case() == Request::kUnsetRate) {
    FL_TRY(check_unset(request.unset_rate(), "unset_rate"));
  }
  return absl::OkStatus();
}

absl::Status apply_weight(const v1::SetKeyRequest& asked, QueueRules& rules) {
  auto& weights = *rules.mutable_weights();
  if (asked.weight_change_case() == v1::SetKeyRequest::kUnsetWeight) weights.erase(asked.key());
  if (!asked.has_weight()) return absl::OkStatus();
  if (!weights.contains(asked.key()) && weights.size() >= static_cast<size_t>(kWeightsMax)) {
    return errors::failed_precondition(
        absl::StrCat("the queue has ", weights.size(),
                     " fairness weight overrides, as many as there may be; unset some"));
  }
  weights[asked.key()] = asked.weight();
  return absl::OkStatus();
}

absl::Status apply(const v1::SetKeyRequest& asked, QueueRules& rules) {
  using Request = v1::SetKeyRequest;
  FL_TRY(edit_rule(rules, asked.key(), [&](QueueRules::KeyRule& rule) {
    if (asked.has_running_max()) rule.set_running_max(asked.running_max());
    if (asked.running_max_change_case() == Request::kUnsetRunningMax) rule.clear_running_max();
    if (asked.has_rate_per_second()) rule.set_per_second(asked.rate_per_second());
    if (asked.rate_change_case() == Request::kUnsetRate) rule.clear_per_second();
  }));
  return apply_weight(asked, rules);
}

absl::Status set_key(Service& service, v1::SetKeyRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const auto key, read_key(request));
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.task_queue().namespace_()));
  FL_TRY(check(request, queue.kind, allows_override_of_unkeyed(*ns)));
  auto change = [asked = v1::SetKeyRequest(request)](QueueRules& rules, TimeNs) {
    return apply(asked, rules);
  };
  return change_key<v1::SetKeyResponse>(service, std::move(queue), key, std::move(change), call);
}

absl::Status pause_key(Service& service, v1::PauseKeyRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const auto key, read_key(request));
  FL_TRY(check_text(request.reason(), "reason"));
  FL_TRY(check_text(request.identity(), "identity"));
  auto change = [key, reason = request.reason(), identity = request.identity()](QueueRules& rules,
                                                                                TimeNs now) {
    return edit_rule(rules, key, [&](QueueRules::KeyRule& rule) {
      const bool is_paused = rule.has_pause();
      pause(reason, identity, is_paused, now, *rule.mutable_pause());
    });
  };
  return change_key<v1::PauseKeyResponse>(service, std::move(queue), key, std::move(change), call);
}

absl::Status resume_key(Service& service, v1::ResumeKeyRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const auto key, read_key(request));
  auto change = [key](QueueRules& rules, TimeNs) {
    return edit_rule(rules, key, [](QueueRules::KeyRule& rule) {
      rule.clear_pause();
      rule.clear_drain_below();
    });
  };
  return change_key<v1::ResumeKeyResponse>(service, std::move(queue), key, std::move(change), call);
}

absl::Status drain_key(Service& service, v1::DrainKeyRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(const auto key, read_key(request));
  auto change = [key](QueueRules& rules, TimeNs) {
    return edit_rule(rules, key, [](QueueRules::KeyRule& rule) {
      rule.clear_pause();
      rule.set_drain_below(kDrainFromNow);
    });
  };
  return change_key<v1::DrainKeyResponse>(service, std::move(queue), key, std::move(change), call);
}

absl::Status purge_key(Service& service, v1::PurgeKeyRequest& request, const CallPtr& call) {
  shard::PurgeKey purge;
  FL_TRY_ASSIGN(purge.queue, read_queue(service, request.task_queue()));
  FL_TRY_ASSIGN(purge.key, read_key(request));
  FL_TRY(check_text(request.reason(), "reason"));
  FL_TRY(check_text(request.identity(), "identity"));
  purge.reason = request.reason();
  purge.identity = request.identity();
  service.engine.purge_key(std::move(purge),
                           answer<shard::Purged>(call, [](const shard::Purged& purged) {
                             v1::PurgeKeyResponse response;
                             response.set_tasks(purged.tasks);
                             return response.SerializeAsString();
                           }));
  return absl::OkStatus();
}

}  // namespace

void add_change_handlers(Registrar& registrar) {
  registrar.serve(set_task_queue);
  registrar.serve(pause_task_queue);
  registrar.serve(resume_task_queue);
  registrar.serve(set_key);
  registrar.serve(pause_key);
  registrar.serve(resume_key);
  registrar.serve(drain_key);
  registrar.serve(purge_key);
}

}  // namespace fairlead::api::queues
