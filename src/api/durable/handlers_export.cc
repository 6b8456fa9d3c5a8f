// A run's history as a bundle that tools read without a server: they replay it, or check that
// nobody has changed it.

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "api/durable/canonical.h"
#include "api/durable/codec.h"
#include "api/durable/desk.h"
#include "api/durable/run_status.h"
#include "base/sha256.h"

namespace fairlead::durable {

namespace {

constexpr int kBatchesPerPage = 1000;

json::array events_of(const std::string& history) {
  const auto parsed = parse_json(absl::StrCat("[", join_events(history, INT64_MAX).joined, "]"));
  json::array events;
  if (!parsed.has_value()) return events;
  for (const auto& each : parsed->as_array()) {
    auto event = each.as_object();
    // Taken out first: a new member may move the others.
    json::value type = event.at("event_type");
    event["type"] = std::move(type);
    event.erase("event_type");
    event.erase("timestamp");
    events.emplace_back(std::move(event));
  }
  return events;
}

json::object bundle_of(const model::RunState& run, const std::string& ns, json::array events,
                       TimeNs now) {
  const auto count = static_cast<int64_t>(events.size());
  json::object workflow{{"instance_id", run.workflow_id()},
                        {"run_id", run.run_id()},
                        {"run_number", run.durable().run_number()},
                        {"workflow_type", run.workflow_type()},
                        {"namespace", ns},
                        {"task_queue", known_queue(run.task_queue())},
                        {"status", to_json(status_of(run))},
                        {"started_at", format_time(run.start_ns())},
                        {"closed_at", time_or_null(run.close_ns())},
                        {"last_history_sequence", count}};
  json::object bundle{{"schema", "durable-workflow.v2.history-export"},
                      {"schema_version", 1},
                      {"exported_at", format_time(now)},
                      {"history_complete", !run.durable().is_parked() && run.close_ns() != 0},
                      {"workflow", std::move(workflow)},
                      {"payloads", {{"codec", "avro"}}},
                      {"history_events", std::move(events)}};
  // Views of the events, which are all there; nothing here needs them.
  for (const char* name :
       {"commands", "signals", "updates", "tasks", "activities", "timers", "failures"}) {
    bundle[name] = json::array{};
  }
  bundle["links"] = json::object{};
  bundle["redaction"] = {{"applied", false}, {"paths", json::array{}}};
  bundle["codec_schemas"] = json::object{};
  bundle["payload_manifest"] = {{"entries", json::array{}}};
  const auto digest = sha256(canonical_json(bundle));
  bundle["integrity"] = {
      {"canonicalization", "json-recursive-ksort-v1"},
      {"checksum_algorithm", "sha256"},
      {"checksum",
       absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()})},
      {"signature_algorithm", nullptr},
      {"signature", nullptr},
      {"key_id", nullptr}};
  return bundle;
}

}  // namespace

void Door::Impl::export_history(CallPtr call) {
  struct Export {
    model::RunState run;
    std::string history;
    int64_t next = 1;
  };
  const auto exported = std::make_shared<Export>();
  const auto run = run_of(*call, 2);
  auto step = std::make_shared<std::function<void()>>();
  *step = [this, call, run, exported, step] {
    shard::HistoryRequest request;
    request.run = run;
    request.from_event = exported->next;
    request.max_batches = kBatchesPerPage;
    engine_.read_history(std::move(request),
                         here<shard::HistoryPage>(
                             [this, call, exported, step](absl::StatusOr<shard::HistoryPage> page) {
                               const auto again = std::exchange(*step, nullptr);
                               if (!page.ok()) return call->refuse(page.status());
                               const int64_t read = join_events(page->history, INT64_MAX).count;
                               exported->history += page->history;
                               exported->next += read;
                               if (read > 0 && exported->next < exported->run.next_event_id()) {
                                 *step = again;
                                 return (*step)();
                               }
                               call->answer(200, bundle_of(exported->run, call->ns->name(),
                                                           events_of(exported->history), now()));
                             }));
  };
  engine_.describe_workflow(
      run, here<shard::RunView>([call, exported, step](absl::StatusOr<shard::RunView> view) {
        if (!view.ok()) {
          *step = nullptr;
          return call->refuse(404, "run_not_found", std::string(view.status().message()));
        }
        exported->run = std::move(view->run);
        (*step)();
      }));
}

}  // namespace fairlead::durable
