#include "server/config_keys.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "api/temporal/callbacks.h"
#include "base/spelling.h"
#include "base/time.h"

namespace fairlead::server {
namespace {

constexpr int64_t kKib = 1 << 10;
constexpr int64_t kMib = 1 << 20;

// ---- what a text may be -------------------------------------------------------------------------

std::string complain_of_address(std::string_view text) {
  in6_addr parsed{};
  const std::string address(text);
  if (inet_pton(AF_INET, address.c_str(), &parsed) == 1) return "";
  if (inet_pton(AF_INET6, address.c_str(), &parsed) == 1) return "";
  return "is not an IP address; 127.0.0.1 keeps the server to this machine, 0.0.0.0 opens it to "
         "all";
}

std::string complain_of_folder(std::string_view text) {
  return text.empty() ? "is empty; name a folder" : "";
}

std::string complain_of_level(std::string_view text) {
  constexpr std::array kLevels = {"trace", "debug", "info", "warn", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), text) != kLevels.end()) return "";
  return "is not one of trace, debug, info, warn, error";
}

std::string complain_of_format(std::string_view text) {
  return text == "text" || text == "json" ? "" : "is not one of text, json";
}

std::string complain_of_switch(std::string_view text) {
  return text == "on" || text == "off" ? "" : "is not one of on, off";
}

std::string complain_of_driver(std::string_view text) {
  return text == "none" || text == "token" || text == "signature"
             ? ""
             : "is not one of none, token, signature";
}

std::string complain_of_truth(std::string_view text) {
  return text == "true" || text == "false" ? "" : "is not one of true, false";
}

std::string complain_of_nothing(std::string_view) { return ""; }

std::string complain_of_first_turn(std::string_view text) {
  return text == "scheduled" || text == "prompt" ? "" : "is not one of scheduled, prompt";
}

std::string complain_of_transition(std::string_view text) {
  constexpr std::array kWays = {"drain", "drain-per-level", "immediate"};
  if (std::find(kWays.begin(), kWays.end(), text) != kWays.end()) return "";
  return "is not one of drain, drain-per-level, immediate";
}

std::string complain_of_client_weights(std::string_view text) {
  return text == "honour" || text == "ignore" ? "" : "is not one of honour, ignore";
}

std::string complain_of_addresses(std::string_view text) {
  const auto parsed = api::CallbackAddresses::parse(text);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

// ---- lines of the table -------------------------------------------------------------------------

template <auto Section, auto Field>
constexpr ConfigKey number(std::string_view name, int64_t min, int64_t max, std::string_view help,
                           int64_t unit = 1) {
  using Type = std::remove_cvref_t<decltype((std::declval<Config&>().*Section).*Field)>;
  return {
      name, help,
      ConfigKey::Number{
          .min = min,
          .max = max,
          .unit = unit,
          .set = [](Config& config,
                    int64_t value) { (config.*Section).*Field = static_cast<Type>(value); },
          .get =
              [](const Config& config) { return static_cast<int64_t>((config.*Section).*Field); }}};
}

// Of what a run of Durable Workflow may have open.
template <auto Field>
constexpr ConfigKey run_limit(std::string_view name, std::string_view help) {
  return {
      name, help,
      ConfigKey::Number{
          .min = 1,
          .max = 1'000'000,
          .unit = 1,
          .set = [](Config& config, int64_t value) { config.durable.run_limits.*Field = value; },
          .get = [](const Config& config) { return config.durable.run_limits.*Field; }}};
}

template <auto Section, auto Field>
constexpr ConfigKey text(std::string_view name, std::string (*complaint)(std::string_view),
                         std::string_view help) {
  return {name, help,
          ConfigKey::Text{.complaint = complaint, .field = [](Config& config) -> std::string& {
                            return (config.*Section).*Field;
                          }}};
}

constexpr ConfigKey also(std::string_view alias, ConfigKey key) {
  key.alias = alias;
  return key;
}

using Server = Config::Server;
using Durable = durable::Options;
constexpr auto kDurable = &Config::durable;
using RunLimits = shard::RunLimits;
using Engine = Config::Engine;
using Limits = history::Limits;
using Queues = Config::Queues;
constexpr auto kServer = &Config::server;
constexpr auto kEngine = &Config::engine;
constexpr auto kLimits = &Config::limits;
constexpr auto kQueues = &Config::queues;
constexpr auto kLog = &Config::log;
constexpr auto kCallbacks = &Config::callbacks;

// In the order of the help and of fairlead.example.toml.
constexpr std::array kKeys = {
    text<kServer, &Server::bind>("server.bind", complain_of_address,
                                 "IP address to listen on; 0.0.0.0 for every interface"),
    number<kServer, &Server::grpc_port>("server.grpc_port", 1, 65535, "Port of the gRPC API"),
    number<kServer, &Server::http_port>("server.http_port", 1, 65535,
                                        "Port of /metrics, /healthz and /api"),
    text<kServer, &Server::data_dir>("server.data_dir", complain_of_folder,
                                     "Folder of the store; made when missing"),

    number<kEngine, &Engine::shards>("engine.shards", 1, 1024,
                                     "Slices of a new store; one that exists keeps its own"),
    number<kEngine, &Engine::executors>("engine.executors", 0, 256,
                                        "Threads that run shards; 0: half of the cores"),
    number<kEngine, &Engine::cache_bytes>("engine.cache_mib", 1, 1 << 20,
                                          "Memory for workflows that are in use, in MiB", kMib),
    number<kEngine, &Engine::requests_max>(
        "engine.requests_max", 1, 10'000'000,
        "Requests under way; beyond it callers are told RESOURCE_EXHAUSTED"),
    number<kEngine, &Engine::polls_per_namespace_max>(
        "engine.polls_per_namespace_max", 1, 10'000'000,
        "Parked polls of a namespace; beyond it pollers are told RESOURCE_EXHAUSTED"),

    number<kLimits, &Limits::blob_bytes>("limits.blob_kib", 1, 64 << 10,
                                         "An input, result, signal or failure, in KiB", kKib),
    number<kLimits, &Limits::history_events>("limits.history_events", 10, 10'000'000,
                                             "Events of a run; beyond it the run is terminated"),
    number<kLimits, &Limits::history_bytes>(
        "limits.history_mib", 1, 4 << 10,
        "Size of a run's history in MiB; beyond it the run is terminated", kMib),
    number<kLimits, &Limits::history_events_suggest>(
        "limits.history_suggest_events", 1, 10'000'000,
        "Events after which workers are told to continue as new"),
    number<kLimits, &Limits::history_bytes_suggest>(
        "limits.history_suggest_mib", 1, 4 << 10,
        "Size in MiB after which workers are told to continue as new", kMib),
    number<kLimits, &Limits::state_bytes>(
        "limits.state_mib", 1, 1 << 10,
        "A run and all that is pending in it, in MiB; beyond it the run is terminated", kMib),
    number<kLimits, &Limits::transaction_bytes>(
        "limits.transaction_mib", 1, 1 << 10,
        "Events that one step writes, in MiB; beyond it the run is terminated", kMib),
    number<kLimits, &Limits::pending_activities>("limits.pending_activities", 1, 1'000'000,
                                                 "Activities that a run has open at once"),
    number<kLimits, &Limits::signals>("limits.signals", 1, 10'000'000, "Signals that a run takes"),
    number<kLimits, &Limits::buffered_events>(
        "limits.buffered_events", 1, 1'000'000,
        "Events that wait while a worker holds the workflow task"),
    number<kLimits, &Limits::buffered_bytes>("limits.buffered_kib", 1, 1 << 20,
                                             "Size of those events, in KiB", kKib),
    number<kLimits, &Limits::id_bytes>("limits.id_bytes", 36, 10'000,
                                       "Length of ids, names and types, in bytes"),
    number<kLimits, &Limits::last_failure_bytes>(
        "limits.last_failure_kib", 1, 1 << 10,
        "What is kept of an activity's last failure while it retries, in KiB", kKib),
    number<kLimits, &Limits::workflow_task_timeout>(
        "limits.workflow_task_timeout_s", 1, 3'600,
        "Time a worker has for a workflow task when the start does not say, in seconds", kSecond),
    number<kLimits, &Limits::workflow_task_timeout_max>(
        "limits.workflow_task_timeout_max_s", 1, 3'600, "The most a start may ask for", kSecond),
    number<kLimits, &Limits::workflow_task_heartbeat>(
        "limits.workflow_task_heartbeat_s", 1, 86'400,
        "How long local activities may prolong one workflow task, in seconds", kSecond),

    text<kQueues, &Queues::fairness>(
        "queues.fairness", complain_of_switch,
        "on: tenants of a level share by weight; off: first come, first served"),
    text<kQueues, &Queues::first_turn>(
        "queues.first_turn", complain_of_first_turn,
        "When a key that was idle gets its first task: scheduled (in turn) or prompt"),
    text<kQueues, &Queues::transition>(
        "queues.transition", complain_of_transition,
        "What waits when fairness is switched: drain, drain-per-level or immediate"),
    text<kQueues, &Queues::client_weights>(
        "queues.client_weights", complain_of_client_weights,
        "honour: the weight that a client sends counts; ignore: only overrides do"),
    number<kQueues, &Queues::client_weight_max>("queues.client_weight_max", 1, 1000,
                                                "The largest weight a client may claim"),
    number<kQueues, &Queues::levels>("queues.levels", 1, queue::kLevelsMax,
                                     "Priority levels of a queue; 1 is the most urgent"),
    number<kQueues, &Queues::lower_level_share>(
        "queues.lower_level_share", 0, queue::kLowerLevelShareMax,
        "Percent of its turns that a level leaves to less urgent ones; 0: levels are strict"),
    number<kQueues, &Queues::tasks_in_memory_max>(
        "queues.tasks_in_memory_max", 0, 100'000'000,
        "Waiting tasks that one queue keeps in memory; the others are read when their turn comes"),
    number<kQueues, &Queues::max_active_keys>(
        "queues.max_active_keys", 1, 100'000'000,
        "Fairness keys that one queue tells apart; keys that come beyond them share lines"),

    text<kCallbacks, &Config::Callbacks::allowed_addresses>(
        "callbacks.allowed_addresses", complain_of_addresses,
        "host:port, … to which completion callbacks may go; empty: nowhere"),

    also("DW_AUTH_DRIVER", text<kDurable, &Durable::auth_driver>(
                               "durable.auth_driver", complain_of_driver,
                               "Who may use /api: token, signature, or none for everyone")),
    also("DW_AUTH_TOKEN",
         text<kDurable, &Durable::auth_token>("durable.auth_token", complain_of_nothing,
                                              "Bearer token for everything below /api")),
    also("DW_WORKER_TOKEN",
         text<kDurable, &Durable::worker_token>("durable.worker_token", complain_of_nothing,
                                                "Bearer token of workers")),
    also("DW_OPERATOR_TOKEN",
         text<kDurable, &Durable::operator_token>("durable.operator_token", complain_of_nothing,
                                                  "Bearer token of clients and operators")),
    also("DW_ADMIN_TOKEN",
         text<kDurable, &Durable::admin_token>("durable.admin_token", complain_of_nothing,
                                               "Bearer token of who manages namespaces")),
    also("DW_SIGNATURE_KEY",
         text<kDurable, &Durable::signature_key>("durable.signature_key", complain_of_nothing,
                                                 "Key of signatures for everything below /api")),
    also("DW_WORKER_SIGNATURE_KEY",
         text<kDurable, &Durable::worker_signature_key>(
             "durable.worker_signature_key", complain_of_nothing, "Key of workers' signatures")),
    also("DW_OPERATOR_SIGNATURE_KEY", text<kDurable, &Durable::operator_signature_key>(
                                          "durable.operator_signature_key", complain_of_nothing,
                                          "Key of clients' and operators' signatures")),
    also("DW_ADMIN_SIGNATURE_KEY", text<kDurable, &Durable::admin_signature_key>(
                                       "durable.admin_signature_key", complain_of_nothing,
                                       "Key of signatures of who manages namespaces")),
    also("DW_COMPRESSION_ENABLED", text<kDurable, &Durable::compression_enabled>(
                                       "durable.compression_enabled", complain_of_truth,
                                       "Whether large answers are compressed for who accepts it")),
    also("DW_AUTH_BACKWARD_COMPATIBLE",
         text<kDurable, &Durable::auth_backward_compatible>(
             "durable.auth_backward_compatible", complain_of_truth,
             "Whether the shared token is good besides those of roles")),
    also("DW_DEFAULT_NAMESPACE", text<kDurable, &Durable::default_namespace>(
                                     "durable.default_namespace", complain_of_nothing,
                                     "Namespace of requests that name none")),
    also("DW_SERVER_ID",
         text<kDurable, &Durable::server_id>("durable.server_id", complain_of_nothing,
                                             "What the server calls itself")),
    also("DW_WORKER_POLL_TIMEOUT", number<kDurable, &Durable::poll_timeout>(
                                       "durable.poll_timeout_s", 1, 60,
                                       "How long a poll is held that does not say", kSecond)),
    also("DW_WORKFLOW_TASK_TIMEOUT",
         number<kDurable, &Durable::workflow_lease>(
             "durable.workflow_task_timeout_s", 1, 120,
             "How long a worker may have a workflow task without renewing it", kSecond)),
    also("DW_ACTIVITY_TASK_TIMEOUT",
         number<kDurable, &Durable::activity_lease>(
             "durable.activity_task_timeout_s", 1, 86'400,
             "How long a worker may have an activity without a heartbeat", kSecond)),
    also("DW_QUERY_TASK_TIMEOUT",
         number<kDurable, &Durable::query_timeout>(
             "durable.query_timeout_s", 0, 600,
             "How long a query waits for its answer; 0: as long as a poll", kSecond)),
    also("DW_QUERY_TASK_LEASE_TIMEOUT",
         number<kDurable, &Durable::query_lease>(
             "durable.query_lease_s", 0, 600,
             "How long a worker may have a query; 0: as long as a workflow task", kSecond)),
    also("DW_WORKER_STALE_AFTER_SECONDS",
         number<kDurable, &Durable::worker_stale_after>(
             "durable.worker_stale_after_s", 0, 86'400,
             "Silence after which a worker is stale; 0: two polls, at least a minute", kSecond)),
    also("DW_V2_UPDATE_WAIT_COMPLETION_TIMEOUT_SECONDS",
         number<kDurable, &Durable::update_wait>("durable.update_wait_s", 1, 600,
                                                 "How long an update waits that does not say",
                                                 kSecond)),
    also("DW_HISTORY_PAGE_SIZE_DEFAULT",
         number<kDurable, &Durable::history_page_default>("durable.history_page_default", 1, 1000,
                                                          "Events of a worker's page of history")),
    also("DW_HISTORY_PAGE_SIZE_MAX",
         number<kDurable, &Durable::history_page_max>("durable.history_page_max", 1, 1000,
                                                      "The most that a worker may ask for")),
    also("DW_MAX_PAYLOAD_BYTES",
         number<kDurable, &Durable::payload_bytes_max>("durable.payload_bytes_max", 1'024, 4 << 20,
                                                       "Size of a request's body in bytes")),
    also("DW_MAX_MEMO_BYTES",
         number<kDurable, &Durable::memo_bytes_max>("durable.memo_bytes_max", 1, 4 << 20,
                                                    "Size of a workflow's memo in bytes")),
    also("DW_MAX_OPERATION_NAME_LENGTH",
         number<kDurable, &Durable::operation_name_bytes_max>(
             "durable.operation_name_bytes_max", 1, 1'000,
             "Length of the names of signals, queries and updates in bytes")),
    also("DW_MAX_SEARCH_ATTRIBUTES", number<kDurable, &Durable::search_attributes_max>(
                                         "durable.search_attributes_max", 0, 10'000,
                                         "Search attributes that a namespace may define")),
    also("DW_MAX_SEARCH_ATTRIBUTE_KEY_LENGTH",
         number<kDurable, &Durable::search_attribute_key_bytes_max>(
             "durable.search_attribute_key_bytes_max", 1, 1'000,
             "Length of a search attribute's name in bytes")),
    also("DW_MAX_SEARCH_ATTRIBUTE_VALUE_BYTES",
         number<kDurable, &Durable::search_attribute_value_bytes_max>(
             "durable.search_attribute_value_bytes_max", 1, 1 << 20,
             "Size of a search attribute's value in bytes")),
    also("DW_HISTORY_RETENTION_DAYS",
         number<kDurable, &Durable::retention_days>(
             "durable.retention_days", 1, 365,
             "How long a new namespace keeps closed runs that does not say")),
    also("DW_MAX_HISTORY_EVENTS",
         run_limit<&RunLimits::history_events>(
             "durable.history_events_max", "Events of a run; beyond it only its end is accepted")),
    also("DW_MAX_PENDING_ACTIVITIES",
         run_limit<&RunLimits::pending_activities>("durable.pending_activities_max",
                                                   "Activities that a run has open at once")),
    also("DW_MAX_PENDING_CHILDREN",
         run_limit<&RunLimits::pending_children>("durable.pending_children_max",
                                                 "Children that a run has open at once")),
    also("DW_V2_LIMIT_PENDING_TIMERS",
         run_limit<&RunLimits::pending_timers>(
             "durable.pending_timers_max",
             "Timers and waits with a time limit that a run has open at once")),
    also("DW_V2_LIMIT_PENDING_SIGNALS",
         run_limit<&RunLimits::pending_signals>(
             "durable.pending_signals_max", "Signals that wait until a run has dealt with them")),
    also("DW_V2_LIMIT_PENDING_UPDATES",
         run_limit<&RunLimits::pending_updates>(
             "durable.pending_updates_max", "Updates that wait until a run has dealt with them")),
    also("DW_V2_LIMIT_COMMAND_BATCH_SIZE",
         number<kDurable, &Durable::command_batch_max>("durable.command_batch_max", 1, 10'000,
                                                       "Commands that a worker may send at once")),
    also("DW_V2_CONTINUE_AS_NEW_EVENT_THRESHOLD",
         number<kDurable, &Durable::continue_as_new_events>(
             "durable.continue_as_new_events", 1, 10'000'000,
             "Events after which workers are advised to continue as new")),
    also("DW_V2_CONTINUE_AS_NEW_SIZE_BYTES_THRESHOLD",
         number<kDurable, &Durable::continue_as_new_bytes>(
             "durable.continue_as_new_bytes", 1, 1 << 30,
             "Size of a history in bytes after which workers are advised to continue as new")),

    text<kLog, &Config::Log::level>("log.level", complain_of_level,
                                    "trace, debug, info, warn or error"),
    text<kLog, &Config::Log::format>("log.format", complain_of_format, "text or json"),
};

// ---- nearness -----------------------------------------------------------------------------------

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string ConfigKey::environment_name() const {
  const std::string words = absl::StrReplaceAll(std::string(name), {{".", "_"}});
  return absl::StrCat("FAIRLEAD_", absl::AsciiStrToUpper(words));
}

std::string ConfigKey::flag() const {
  const std::string words(section() == "server" ? last_word(name) : name);
  return absl::StrCat("--", absl::StrReplaceAll(words, {{".", "-"}, {"_", "-"}}));
}

std::string ConfigKey::default_text() const {
  Config defaults;
  if (const auto* kind = std::get_if<Number>(&value)) {
    return absl::StrCat(kind->get(defaults) / kind->unit);
  }
  return std::get<Text>(value).field(defaults);
}

std::string ConfigKey::wanted() const {
  const auto* kind = std::get_if<Number>(&value);
  return kind == nullptr ? "a string"
                         : absl::StrCat("an integer from ", kind->min, " to ", kind->max);
}

absl::Status ConfigKey::set_number(int64_t given, Config* config) const {
  const auto* kind = std::get_if<Number>(&value);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " is an integer, but wants ", wanted()));
  }
  if (given < kind->min || given > kind->max) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " = ", given, " is not ", wanted()));
  }
  kind->set(*config, given * kind->unit);
  return absl::OkStatus();
}

absl::Status ConfigKey::set_string(std::string_view given, Config* config) const {
  const auto* kind = std::get_if<Text>(&value);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " is a string, but wants ", wanted()));
  }
  const std::string complaint = kind->complaint(given);
  if (!complaint.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " = \"", std::string(given), "\" ", complaint));
  }
  kind->field(*config) = given;
  return absl::OkStatus();
}

absl::Status ConfigKey::set_text(std::string_view given, Config* config) const {
  if (std::holds_alternative<Text>(value)) return set_string(given, config);
  int64_t parsed = 0;
  if (!absl::SimpleAtoi(absl::string_view(given.data(), given.size()), &parsed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " = \"", std::string(given), "\" is not ", wanted()));
  }
  return set_number(parsed, config);
}

std::span<const ConfigKey> config_keys() { return kKeys; }

std::span<const std::string_view> meaningless_variables() {
  static constexpr std::string_view kNames[] = {
      "DW_WORKER_POLL_INTERVAL_MS",
      "DW_WORKER_POLL_SIGNAL_CHECK_INTERVAL_MS",
      "DW_WAKE_SIGNAL_TTL_SECONDS",
      "DW_MAX_TASKS_PER_POLL",
      "DW_EXPIRED_WORKFLOW_TASK_RECOVERY_SCAN_LIMIT",
      "DW_EXPIRED_WORKFLOW_TASK_RECOVERY_TTL_SECONDS",
      "DW_QUERY_TASK_TTL_SECONDS",
      "DW_WORKER_PROTOCOL_VERSION",
  };
  return kNames;
}

const ConfigKey* find_config_key(std::string_view name) {
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const auto& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

std::string_view nearest_config_key(std::string_view name) {
  std::string_view nearest;
  size_t distance_min = std::numeric_limits<size_t>::max();
  for (const auto& key : kKeys) {
    const std::string_view word = last_word(name);
    const size_t whole = edits(name, key.name);
    const size_t last = edits(word, last_word(key.name));
    if (!is_near(whole, name) && !is_near(last, word)) continue;
    // The right word in the wrong section is nearer than a stranger of the same length.
    const size_t distance = std::min(whole, last + 1);
    if (distance < distance_min) {
      distance_min = distance;
      nearest = key.name;
    }
  }
  return nearest;
}

std::string_view nearest_config_section(std::string_view name) {
  std::string_view nearest;
  size_t distance_min = std::numeric_limits<size_t>::max();
  for (const auto& key : kKeys) {
    const size_t distance = edits(name, key.section());
    if (is_near(distance, name) && distance < distance_min) {
      distance_min = distance;
      nearest = key.section();
    }
  }
  return nearest;
}

bool is_config_section(std::string_view name) {
  return std::any_of(kKeys.begin(), kKeys.end(),
                     [&](const auto& key) { return key.section() == name; });
}

}  // namespace fairlead::server
