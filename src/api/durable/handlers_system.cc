// What other servers of this API need somebody to look after, and this one mostly does by itself:
// a task is written together with what it is for, time limits act when they pass, and runs go when
// their retention is over. What can be left for an operator is told as it is.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

// How much of the runs one call looks at, and how many of what it finds it tells and treats.
constexpr int kPagesMax = 20;
constexpr size_t kFoundMax = 200;

// The ids that a pass is for; false after a refusal. None: all.
bool read_ids(Call& call, const char* field, std::set<std::string>* ids) {
  const auto* given = member(call.body, field);
  if (given == nullptr) return true;
  const auto is_text = [](const json::value& each) { return each.is_string(); };
  if (!given->is_array() ||
      !std::all_of(given->as_array().begin(), given->as_array().end(), is_text)) {
    call.invalid(field, absl::StrCat(field, " must be a list of strings"));
    return false;
  }
  for (const auto& each : given->as_array()) ids->insert(to_std(each.as_string()));
  return true;
}

bool read_limit(Call& call, size_t* limit) {
  if (member(call.body, "limit") == nullptr) return true;
  const auto given = integer_of(call.body, "limit");
  if (!given.has_value() || *given < 1) {
    call.invalid("limit", "limit must be a whole number, at least 1");
    return false;
  }
  *limit = std::min(*limit, static_cast<size_t>(*given));
  return true;
}

json::array run_ids_of(const std::vector<model::RunState>& runs) {
  json::array ids;
  for (const auto& run : runs) ids.emplace_back(run.run_id());
  return ids;
}

}  // namespace

// Looks through the runs of the call's namespace, page by page.
void Door::Impl::find_runs(CallPtr call, std::function<bool(const model::RunState&)> matches,
                           size_t limit, std::function<void(FoundRuns)> then) {
  struct Search {
    shard::ListRuns request;
    FoundRuns found;
    int pages = 0;
  };
  auto search = std::make_shared<Search>();
  search->request.ns = call->ns_num();
  search->request.max = limit;
  search->request.may_match = std::move(matches);
  search->request.matches = [](const shard::ListedRun&) { return true; };
  auto step = std::make_shared<std::function<void()>>();
  *step = [this, search, step, limit, then = std::move(then)] {
    runs_.list(search->request, here<shard::RunPage>([search, step, limit,
                                                      then](absl::StatusOr<shard::RunPage> page) {
                 auto& found = search->found;
                 for (auto& each : page->runs) {
                   if (found.runs.size() < limit) found.runs.push_back(std::move(each.run));
                 }
                 search->request.before = page->next;
                 found.is_all = page->next.empty();
                 const bool goes_on =
                     !found.is_all && found.runs.size() < limit && ++search->pages < kPagesMax;
                 if (goes_on) return (*step)();
                 *step = nullptr;
                 then(std::move(found));
               }));
  };
  (*step)();
}

// Runs whose worker could not replay them: they wait until an operator says that it can now.
void Door::Impl::look_for_blocked(CallPtr call, bool repairs) {
  std::set<std::string> ids;
  if (repairs && !read_ids(*call, "run_ids", &ids)) return;
  const std::string instance = repairs ? text_of(call->body, "instance_id") : "";
  const auto matches = [ids, instance](const model::RunState& run) {
    return run.status() == model::RUNNING && run.durable().is_parked() &&
           (ids.empty() || ids.contains(run.run_id())) &&
           (instance.empty() || run.workflow_id() == instance);
  };
  find_runs(call, matches, kFoundMax, [this, call, repairs](FoundRuns found) {
    const auto count = static_cast<int64_t>(found.runs.size());
    json::object answer{{"namespace", call->ns->name()}};
    if (!repairs) {
      answer["policy"] = {
          {"scan_limit", kFoundMax},
          {"lost_tasks", "a task is written together with the event that it is for"},
          {"expired_leases", "the task goes to the next worker at once"},
          {"blocked_runs", "wait for a repair"}};
      answer["candidates"] = {{"total_candidates", count},
                              {"blocked_runs", count},
                              {"missing_tasks", 0},
                              {"expired_leases", 0},
                              {"run_ids", run_ids_of(found.runs)},
                              {"is_complete", found.is_all}};
      return call->answer(200, std::move(answer));
    }
    struct Pass {
      json::object answer;
      json::array repaired;
      size_t left = 0;
    };
    auto pass = std::make_shared<Pass>();
    answer["selected_candidates"] = count;
    answer["is_complete"] = found.is_all;
    pass->answer = std::move(answer);
    pass->left = found.runs.size() + 1;
    const auto note = [call, pass] {
      if (--pass->left > 0) return;
      pass->answer["repaired_count"] = static_cast<int64_t>(pass->repaired.size());
      pass->answer["repaired_run_ids"] = std::move(pass->repaired);
      call->answer(200, std::move(pass->answer));
    };
    for (const auto& run : found.runs) {
      durable_.repair_run({call->ns_num(), run.workflow_id(), run.run_id(), model::DURABLE},
                          here<shard::Repaired>([pass, note](absl::StatusOr<shard::Repaired> done) {
                            // One that has closed or was repaired meanwhile needs it no more.
                            if (done.ok() && done->was_needed)
                              pass->repaired.emplace_back(done->run_id);
                            note();
                          }));
    }
    note();
  });
}

// Closed runs whose time is over. Each goes by itself when it is, so there are hardly ever any.
void Door::Impl::look_for_expired(CallPtr call, bool prunes) {
  std::set<std::string> ids;
  size_t limit = kFoundMax;
  if (prunes && (!read_ids(*call, "run_ids", &ids) || !read_limit(*call, &limit))) return;
  const auto matches = [ids, present = now()](const model::RunState& run) {
    return run.status() != model::RUNNING && run.delete_at_ns() != 0 &&
           run.delete_at_ns() <= present && (ids.empty() || ids.contains(run.run_id()));
  };
  find_runs(call, matches, limit, [this, call, prunes](FoundRuns found) {
    json::object answer{{"namespace", call->ns->name()},
                        {"retention_days", call->ns->retention_ns() / kDay},
                        {"cutoff", format_time(now() - call->ns->retention_ns())},
                        {"scan_limit", kFoundMax},
                        {"is_complete", found.is_all}};
    const auto count = static_cast<int64_t>(found.runs.size());
    if (!prunes) {
      answer["expired_run_count"] = count;
      answer["expired_run_ids"] = run_ids_of(found.runs);
      return call->answer(200, std::move(answer));
    }
    answer["processed"] = count;
    answer["pruned_run_ids"] = run_ids_of(found.runs);
    auto left = std::make_shared<size_t>(found.runs.size() + 1);
    const auto note = [call, left, answer = std::move(answer)] {
      if (--*left == 0) call->answer(200, answer);
    };
    for (const auto& run : found.runs) {
      // One that is gone already is what was asked for.
      engine_.delete_workflow({call->ns_num(), run.workflow_id(), run.run_id(), model::DURABLE},
                              here<shard::Done>([note](absl::StatusOr<shard::Done>) { note(); }));
    }
    note();
  });
}

void Door::Impl::activity_timeout_status(CallPtr call) {
  call->answer(200, {{"namespace", call->ns->name()},
                     {"enforcement", "at_deadline"},
                     {"scan_limit", kFoundMax},
                     {"expired_count", 0},
                     {"expired_execution_ids", json::array()}});
}

void Door::Impl::activity_timeout_pass(CallPtr call) {
  std::set<std::string> ids;
  size_t limit = kFoundMax;
  if (!read_ids(*call, "execution_ids", &ids) || !read_limit(*call, &limit)) return;
  json::array results;
  for (const auto& id : ids) {
    if (results.size() >= limit) break;
    results.emplace_back(json::object{
        {"execution_id", id}, {"outcome", "skipped"}, {"reason", "timeouts_act_at_their_time"}});
  }
  call->answer(200, {{"namespace", call->ns->name()},
                     {"enforcement", "at_deadline"},
                     {"processed", 0},
                     {"enforced", 0},
                     {"skipped", static_cast<int64_t>(results.size())},
                     {"results", std::move(results)}});
}

}  // namespace fairlead::durable
