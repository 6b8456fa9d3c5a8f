#include "scenarios/statements.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::scenarios {

namespace {

using Rules = model::QueueRules;

int32_t priority_of(const Arguments& a) {
  return a.has("P") ? static_cast<int32_t>(a.number("P")) : 0;
}

double weight_of(const Arguments& a) { return a.has("W") ? a.number("W") : 0; }

// "t1" to "t20": the same name with another number at its end.
std::pair<std::string, int64_t> numbered(const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size()) throw Wrong(absl::StrCat(name, " does not end with a number"));
  return {name.substr(0, digits), parse_count(name.substr(digits))};
}

void arrive_many(Stage& stage, const Arguments& a) {
  const auto [name, first] = numbered(a.word("FIRST"));
  const auto [same, last] = numbered(a.word("LAST"));
  if (name != same || first > last) {
    throw Wrong(absl::StrCat(a.word("FIRST"), " to ", a.word("LAST"), " is no row of keys"));
  }
  for (int64_t i = first; i <= last; ++i) {
    stage.arrive(absl::StrCat(name, i), weight_of(a), priority_of(a), a.count("N"));
  }
}

template <typename Change>
auto rules(Change change) {
  return
      [change](Stage& stage, const Arguments& a) { stage.change([&](Rules& r) { change(r, a); }); };
}

template <typename Change>
auto rule_of_key(Change change) {
  return rules([change](Rules& r, const Arguments& a) {
    const auto key = a.key("KEY");
    auto& rule = (*r.mutable_keys())[key];
    change(rule, a);
    if (rule.ByteSizeLong() == 0) r.mutable_keys()->erase(key);
  });
}

const std::vector<Statement> kStatements = {
    // ---- tasks come and go
    {"key KEY [weight W] [priority P] has|gets N task|tasks",
     "so many tasks arrive; the weight and the priority are what their sender says",
     [](Stage& s, const Arguments& a) {
       s.arrive(a.key("KEY"), weight_of(a), priority_of(a), a.count("N"));
     }},
    {"keys FIRST to LAST [weight W] [priority P] have|get N task|tasks each",
     "the same for t1 to t20, one key after the other", arrive_many},
    {"cancel N task|tasks of KEY", "its oldest waiting tasks go away without a start",
     [](Stage& s, const Arguments& a) { s.cancel(a.key("KEY"), a.count("N")); }},
    {"KEY finishes N task|tasks", "workers are done with so many of its running tasks",
     [](Stage& s, const Arguments& a) { s.finish(a.key("KEY"), a.count("N")); }},
    {"the next start fails", "a worker is about to get a task, and the start comes to nothing",
     [](Stage& s, const Arguments&) { s.fail_start(); }},

    // ---- what an operator can do
    {"weight of KEY becomes W", "an override: it beats what senders say",
     rules([](Rules& r, const Arguments& a) {
       (*r.mutable_weights())[a.key("KEY")] = static_cast<float>(a.number("W"));
     })},
    {"weight of KEY is no longer overridden", "what senders say counts again",
     rules([](Rules& r, const Arguments& a) { r.mutable_weights()->erase(a.key("KEY")); })},
    {"queue limit RATE", "starts per second of the whole queue",
     rules([](Rules& r, const Arguments& a) {
       r.mutable_queue_limit()->set_per_second(a.per_second("RATE"));
     })},
    {"no queue limit", "", rules([](Rules& r, const Arguments&) { r.clear_queue_limit(); })},
    {"key limit RATE", "starts per second of a key of weight 1; others: times their weight",
     rules([](Rules& r, const Arguments& a) {
       r.mutable_key_limit()->set_per_second(a.per_second("RATE"));
     })},
    {"no key limit", "", rules([](Rules& r, const Arguments&) { r.clear_key_limit(); })},
    {"limit of KEY RATE", "a limit of its own, whatever its weight",
     rule_of_key(
         [](Rules::KeyRule& r, const Arguments& a) { r.set_per_second(a.per_second("RATE")); })},
    {"no limit of KEY", "",
     rule_of_key([](Rules::KeyRule& r, const Arguments&) { r.clear_per_second(); })},
    {"queue cap N", "at most so many tasks of the queue run at a time",
     rules([](Rules& r, const Arguments& a) {
       r.set_running_max(static_cast<uint32_t>(a.count("N")));
     })},
    {"no queue cap", "", rules([](Rules& r, const Arguments&) { r.clear_running_max(); })},
    {"key cap N", "at most so many tasks of each key run at a time",
     rules([](Rules& r, const Arguments& a) {
       r.set_running_max_per_key(static_cast<uint32_t>(a.count("N")));
     })},
    {"no key cap", "", rules([](Rules& r, const Arguments&) { r.clear_running_max_per_key(); })},
    {"cap of KEY N", "a cap of its own", rule_of_key([](Rules::KeyRule& r, const Arguments& a) {
       r.set_running_max(static_cast<uint32_t>(a.count("N")));
     })},
    {"no cap of KEY", "",
     rule_of_key([](Rules::KeyRule& r, const Arguments&) { r.clear_running_max(); })},
    {"pause the queue", "", rules([](Rules& r, const Arguments&) { r.mutable_pause(); })},
    {"resume the queue", "", rules([](Rules& r, const Arguments&) { r.clear_pause(); })},
    {"pause KEY", "none of its tasks starts",
     rule_of_key([](Rules::KeyRule& r, const Arguments&) { r.mutable_pause(); })},
    {"drain KEY", "what it has now may go; what comes later is held",
     rule_of_key([](Rules::KeyRule& r, const Arguments&) {
       r.set_drain_below(std::numeric_limits<uint64_t>::max());
     })},
    {"resume KEY", "the end of its pause or drain",
     rule_of_key([](Rules::KeyRule& r, const Arguments&) {
       r.clear_pause();
       r.clear_drain_below();
     })},
    {"fairness on", "keys of a priority share by weight",
     rules([](Rules& r, const Arguments&) { r.set_fairness(Rules::ON); })},
    {"fairness off", "first come, first served inside a priority",
     rules([](Rules& r, const Arguments&) { r.set_fairness(Rules::OFF); })},
    {"fairness by dispatches", "shares are counted in tasks handed out; so it is unless told",
     rules([](Rules& r, const Arguments&) { r.set_basis(Rules::DISPATCH); })},
    {"fairness by running tasks", "shares are counted in tasks that run",
     rules([](Rules& r, const Arguments&) { r.set_basis(Rules::IN_FLIGHT); })},
    {"transition drain", "when fairness is switched, all that waits goes first, in its old order",
     rules([](Rules& r, const Arguments&) { r.set_transition(Rules::DRAIN); })},
    {"transition drain-per-level", "the same inside each priority",
     rules([](Rules& r, const Arguments&) { r.set_transition(Rules::DRAIN_PER_LEVEL); })},
    {"transition immediate", "the new order holds for what waits, too",
     rules([](Rules& r, const Arguments&) { r.set_transition(Rules::IMMEDIATE); })},
    {"first turn scheduled", "a key that was idle waits for its turn; so it is unless told",
     rules([](Rules& r, const Arguments&) { r.set_first_turn(Rules::SCHEDULED); })},
    {"first turn prompt", "a key that was idle gets its first task within a few starts",
     rules([](Rules& r, const Arguments&) { r.set_first_turn(Rules::PROMPT); })},
    {"restart", "the server dies and comes back with what was on disk",
     [](Stage& s, const Arguments&) { s.restart(); }},

    // ---- workers and time
    {"workers N", "how many tasks run at a time while time passes; unless told, any number",
     [](Stage& s, const Arguments& a) { s.set_workers(a.count("N")); }},
    {"tasks take TIME", "started tasks end by themselves after that; unless told, never",
     [](Stage& s, const Arguments& a) { s.set_task_time(a.time("TIME")); }},
    {"workers ask for RATE", "the limit that workers send along; a queue limit beats it",
     [](Stage& s, const Arguments& a) { s.set_worker_limit(a.per_second("RATE")); }},
    {"wait TIME", "nobody takes a task meanwhile",
     [](Stage& s, const Arguments& a) { s.wait(a.time("TIME")); }},

    // ---- what has to come of it
    {"expect next : KEYS...", "workers ask one after the other and get exactly these",
     [](Stage& s, const Arguments& a) { expect_order(s, a.words("KEYS")); }},
    {"expect next N : TALLY...", "of the next starts so many are of each key, in any order",
     [](Stage& s, const Arguments& a) { expect_tally(s, a.count("N"), a.words("TALLY")); }},
    {"expect every N of the next M : TALLY...", "so it is wherever one begins to count",
     [](Stage& s, const Arguments& a) {
       expect_every(s, a.count("N"), a.count("M"), a.words("TALLY"));
     }},
    {"expect KEY within the next N", "a start of this key is among the next ones",
     [](Stage& s, const Arguments& a) { expect_within(s, a.key("KEY"), a.count("N")); }},
    {"expect nothing", "no task may start at this moment",
     [](Stage& s, const Arguments&) { expect_nothing(s); }},
    {"expect in the next TIME : TALLY...",
     "time passes, and workers take whatever may go as soon as it may",
     [](Stage& s, const Arguments& a) { expect_in_time(s, a.time("TIME"), a.words("TALLY")); }},
    {"expect at most N starts in the next TIME", "the same, counting all keys",
     [](Stage& s, const Arguments& a) {
       expect_at_most(s, a.count("N"), std::nullopt, a.time("TIME"));
     }},
    {"expect at most N starts of KEY in the next TIME", "the same, counting one key",
     [](Stage& s, const Arguments& a) {
       expect_at_most(s, a.count("N"), a.key("KEY"), a.time("TIME"));
     }},
    {"expect all never above RATE",
     "so far no stretch of t seconds had more than RATE x (t + 1) + 1 starts",
     [](Stage& s, const Arguments& a) {
       expect_never_above(s, std::nullopt, a.per_second("RATE"));
     }},
    {"expect KEY never above RATE", "the same for one key",
     [](Stage& s, const Arguments& a) {
       expect_never_above(s, a.key("KEY"), a.per_second("RATE"));
     }},
    {"expect everyone within N task|tasks of the ideal",
     "so far no key was ever further from its exact share",
     [](Stage& s, const Arguments& a) { expect_near_ideal(s, a.number("N")); }},
    {"expect at most N running of KEY so far", "",
     [](Stage& s, const Arguments& a) {
       if (s.running_max(a.key("KEY")) <= a.count("N")) return;
       throw Wrong(
           absl::StrCat("expected at most ", a.count("N"), ", got ", s.running_max(a.key("KEY"))));
     }},
    {"expect N waiting", "in the whole queue",
     [](Stage& s, const Arguments& a) { expect_count(a.count("N"), s.waiting(), "waiting"); }},
    {"expect N waiting of KEY", "",
     [](Stage& s, const Arguments& a) {
       expect_count(a.count("N"), s.waiting(a.key("KEY")), "waiting");
     }},
    {"expect N running", "in the whole queue",
     [](Stage& s, const Arguments& a) { expect_count(a.count("N"), s.running(), "running"); }},
};

}  // namespace

std::span<const Statement> statements() { return kStatements; }

const Statement& find_statement(const std::vector<std::string>& words, Arguments* arguments) {
  for (const auto& statement : kStatements) {
    *arguments = {};
    if (Pattern(statement.pattern).match(words, arguments)) return statement;
  }
  throw Wrong("no such statement; README.md beside the scenarios lists them all");
}

}  // namespace fairlead::scenarios
