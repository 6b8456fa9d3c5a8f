#pragma once

#include <string>
#include <utility>

#include "api/durable/json.h"
#include "simulation/auditor.h"
#include "simulation/probes.h"
#include "simulation/scheduler.h"
#include "simulation/trace.h"
#include "simulation/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::sim {

inline constexpr char kNamespace[] = "default";
inline constexpr char kFlowQueue[] = "flows";
inline constexpr char kActivityQueue[] = "activities";

// How workers behave. In the calm that follows the storm all of these are zero, and every workflow
// has to end.
struct Mood {
  double task_failed = 0;
  double task_ignored = 0;
  double task_slow = 0;
  double task_answered_twice = 0;
  double activity_failed = 0;
  double activity_ignored = 0;
  double activity_late = 0;
  double dies_with_task = 0;
  double callback_lost = 0;
  double callback_refused = 0;

  static Mood storm() { return {0.06, 0.04, 0.05, 0.1, 0.25, 0.08, 0.06, 0.03, 0.4, 0.1}; }
};

// What the programs of a simulation share.
struct World {
  Scheduler* scheduler = nullptr;
  Wire* wire = nullptr;
  Auditor* auditor = nullptr;
  Probes* probes = nullptr;
  Trace* trace = nullptr;
  Mood mood;
  // On such a day nobody meddles with the queues, every key has one weight, and much comes at once:
  // a day on which shares can be judged.
  bool is_plain = false;
  uint64_t weights_seed = 0;

  std::string draw_key() const {
    return std::string(1, static_cast<char>('a' + random().below(is_plain ? 6 : 4)));
  }
  // At most 4, in halves.
  float draw_weight(const std::string& key) const {
    const uint64_t drawn = is_plain ? stable_hash(key, weights_seed) : random().below(8);
    return static_cast<float>(1 + drawn % 8) / 2;
  }

  Random& random() const { return scheduler->random(); }
  bool chance(double probability) const { return random().chance(probability); }

  // Calls a method of the API for a process that is alive.
  template <typename Response, typename Request, typename Then>
  void ask(const ProcessPtr& from, const char* method, const Request& request, DurationNs timeout,
           Then then) const {
    wire->send(from, method, request, timeout, [this, then = std::move(then)](Outcome outcome) {
      Response response;
      if (outcome.ok() && !response.ParseFromString(outcome.body)) {
        auditor->fail("a response cannot be parsed");
      }
      then(outcome, std::move(response));
    });
  }

  // The same through the second door. `then` gets an object, empty if there is none.
  template <typename Then>
  void ask_http(const ProcessPtr& from, const char* method, const std::string& path,
                const boost::json::object& body, DurationNs timeout, Then then) const {
    wire->send_http(from, method, path, boost::json::serialize(body), timeout,
                    [this, then = std::move(then)](const Outcome& outcome) {
                      const auto text = outcome.ok() ? outcome.body : outcome.message;
                      auto parsed = durable::parse_json(text);
                      const bool is_object = parsed.has_value() && parsed->is_object();
                      if (outcome.ok() && !is_object) auditor->fail("an answer is no JSON object");
                      then(outcome, is_object ? parsed->as_object() : boost::json::object());
                    });
  }

  // Runs `job` later, if the process is still there.
  template <typename Then>
  void later(const ProcessPtr& process, DurationNs delay, Then job) const {
    scheduler->after(delay, kNobody, [process, job = std::move(job)]() mutable {
      if (process->is_alive) job();
    });
  }

  // The same call again and again until the answer is certain or the caller has had enough.
  template <typename Response, typename Request, typename Then>
  void insist(const ProcessPtr& from, const char* method, Request request, int attempts,
              Then then) const {
    ask<Response>(
        from, method, request, 10 * kSecond,
        [this, from, method, request, attempts, then](const Outcome& outcome, Response response) {
          if (!outcome.is_unknown() || attempts <= 1) {
            then(outcome, std::move(response));
            return;
          }
          later(from, scheduler->between(kMillisecond, 2 * kSecond),
                [this, from, method, request, attempts, then] {
                  insist<Response>(from, method, request, attempts - 1, then);
                });
        });
  }
  template <typename Then>
  void insist_http(const ProcessPtr& from, const std::string& path, boost::json::object body,
                   int attempts, Then then) const {
    ask_http(from, "POST", path, body, 10 * kSecond,
             [this, from, path, body, attempts, then](const Outcome& outcome,
                                                      const boost::json::object& answer) {
               if (!outcome.is_unknown() || attempts <= 1) return then(outcome, answer);
               later(from, scheduler->between(kMillisecond, 2 * kSecond),
                     [this, from, path, body, attempts, then] {
                       insist_http(from, path, body, attempts - 1, then);
                     });
             });
  }
};

}  // namespace fairlead::sim
