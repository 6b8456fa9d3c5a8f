#include "admission/policy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::admission {

namespace {

using Entry = std::array<KindOverrides, kKinds>;

template <typename Value>
void replace(const std::optional<Value>& upper, std::optional<Value>* lower) {
  if (upper.has_value()) *lower = upper;
}

// Two names of one field are one field: whoever says one of them has said it.
template <typename Value>
void replace_pair(const std::optional<Value>& upper, const std::optional<Value>& upper_alias,
                  std::optional<Value>* lower, std::optional<Value>* lower_alias) {
  if (!upper.has_value() && !upper_alias.has_value()) return;
  *lower = upper;
  *lower_alias = upper_alias;
}

void lay_over(const KindOverrides& upper, KindOverrides* lower) {
  const size_t leases = at(Budget::kQueueLeases);
  replace_pair(upper.max[leases], upper.max_active_leases, &lower->max[leases],
               &lower->max_active_leases);
  replace_pair(upper.dispatch_budget_group, upper.budget_group, &lower->dispatch_budget_group,
               &lower->budget_group);
  for (const Budget budget : kAllBudgets) {
    if (budget != Budget::kQueueLeases) replace(upper.max[at(budget)], &lower->max[at(budget)]);
    replace(upper.span[at(budget)], &lower->span[at(budget)]);
  }
}

// The entries that may speak of a queue, the most special one first.
class Search {
 public:
  Search(const Settings& settings, std::string_view ns, std::string_view queue, TaskKind kind) {
    const std::string lower = absl::AsciiStrToLower(std::string(ns));
    const std::string name(queue);
    for (const auto& key :
         {absl::StrCat(lower, ":", name), absl::StrCat(lower, ":*"), name, std::string("*")}) {
      const auto found = settings.overrides.find(key);
      if (found != settings.overrides.end()) entries_.push_back(&found->second[at(kind)]);
    }
  }

  // The first that says something, by whatever `field` looks at.
  template <typename Field>
  auto find(Field field) const -> decltype(field(std::declval<const KindOverrides&>())) {
    for (const auto* entry : entries_) {
      if (auto said = field(*entry); said.has_value()) return said;
    }
    return std::nullopt;
  }

 private:
  std::vector<const KindOverrides*> entries_;
};

Said<int64_t> said_max(const KindOverrides& entry, Budget budget) {
  if (budget == Budget::kQueueLeases && entry.max_active_leases.has_value()) {
    return entry.max_active_leases;
  }
  return entry.max[at(budget)];
}

Cap resolve_cap(const Search& search, const Settings::Defaults& defaults, Budget budget) {
  Cap cap;
  const auto max = search.find([&](const KindOverrides& entry) { return said_max(entry, budget); });
  cap.is_overridden = max.has_value() && max->has_value();
  cap.max = cap.is_overridden ? **max : defaults.max[at(budget)].value_or(0);
  cap.max = std::max<int64_t>(cap.max, 0);
  if (!is_rate(budget)) return cap;
  const auto span = search.find([&](const KindOverrides& entry) { return entry.span[at(budget)]; });
  cap.span = span.has_value() && span->has_value()
                 ? **span
                 : defaults.span[at(budget)].value_or(Span::kFixed);
  // Who asks for more than a window can hold gets what it can hold; never more than was asked.
  if (cap.span == Span::kSliding) cap.max = std::min(cap.max, kSlidingMax);
  return cap;
}

// The full name is looked for everywhere before its alias is: "dispatch_budget_group" under "*"
// beats "budget_group" under "namespace:queue".
std::string resolve_group(const Search& search) {
  auto group = search.find([](const KindOverrides& entry) { return entry.dispatch_budget_group; });
  if (!group.has_value() || !group->has_value()) {
    group = search.find([](const KindOverrides& entry) { return entry.budget_group; });
  }
  return group.has_value() && group->has_value() ? **group : std::string();
}

}  // namespace

std::string_view name_of(TaskKind kind) {
  return kind == TaskKind::kWorkflow ? "workflow_tasks" : "activity_tasks";
}

std::string_view field_of(Budget budget) {
  switch (budget) {
    case Budget::kQueueLeases:
      return "max_active_leases_per_queue";
    case Budget::kNamespaceLeases:
      return "max_active_leases_per_namespace";
    case Budget::kQueueRate:
      return "max_dispatches_per_minute";
    case Budget::kNamespaceRate:
      return "max_dispatches_per_minute_per_namespace";
    case Budget::kGroupRate:
      return "max_dispatches_per_minute_per_budget_group";
  }
  return "";
}

void Settings::lay_over(const Settings& upper) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (size_t budget = 0; budget < kBudgets; ++budget) {
      replace(upper.defaults[kind].max[budget], &defaults[kind].max[budget]);
      replace(upper.defaults[kind].span[budget], &defaults[kind].span[budget]);
    }
  }
  for (const auto& [key, entry] : upper.overrides) {
    for (size_t kind = 0; kind < kKinds; ++kind) {
      admission::lay_over(entry[kind], &overrides[key][kind]);
    }
  }
  replace(upper.queries_pending_max, &queries_pending_max);
  replace(upper.worker_stale_after_s, &worker_stale_after_s);
  replace(upper.worker_poll_timeout_s, &worker_poll_timeout_s);
}

bool Caps::is_any() const {
  return std::any_of(caps.begin(), caps.end(), [](const Cap& cap) { return cap.max > 0; });
}

bool Caps::is_any_rate() const {
  return has(Budget::kQueueRate) || has(Budget::kNamespaceRate) || has(Budget::kGroupRate);
}

std::string Caps::source() const {
  const auto source_of = [&](Budget budget) {
    if (caps[at(budget)].is_overridden) return std::string("server.admission.queue_overrides");
    return absl::StrCat("server.admission.", std::string(name_of(kind)), ".",
                        std::string(field_of(budget)));
  };
  std::vector<std::string> sources;
  for (const Budget budget : kAllBudgets) {
    if (!has(budget)) continue;
    auto source = source_of(budget);
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(std::move(source));
    }
  }
  return sources.empty() ? source_of(Budget::kQueueLeases) : absl::StrJoin(sources, ";");
}

Policies::Policies(Settings settings) : settings_(std::move(settings)) {
  queries_pending_max_ =
      std::clamp<int64_t>(settings_.queries_pending_max.value_or(kQueriesPendingMax), 1, 10'000);
  const int64_t poll_s = settings_.worker_poll_timeout_s.value_or(30);
  const int64_t stale_s =
      settings_.worker_stale_after_s.value_or(std::max<int64_t>(2 * poll_s, 60));
  worker_stale_after_ = stale_s * kSecond;
}

Caps Policies::resolve(std::string_view ns, std::string_view queue, TaskKind kind) const {
  const Search search(settings_, ns, queue, kind);
  Caps caps;
  caps.kind = kind;
  caps.group = resolve_group(search);
  for (const Budget budget : kAllBudgets) {
    if (budget == Budget::kGroupRate && caps.group.empty()) continue;
    caps.caps[at(budget)] = resolve_cap(search, settings_.defaults[at(kind)], budget);
  }
  return caps;
}

}  // namespace fairlead::admission
