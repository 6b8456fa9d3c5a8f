#include "admission/refusal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::admission {

namespace {

std::string holder_of(const Refusal& refusal, const QueueId& id, std::string_view group) {
  switch (refusal.budget) {
    case Budget::kQueueLeases:
    case Budget::kQueueRate:
      return absl::StrCat("queue ", id.queue);
    case Budget::kNamespaceLeases:
    case Budget::kNamespaceRate:
      return absl::StrCat("namespace ", id.ns);
    case Budget::kGroupRate:
      return absl::StrCat("budget group ", std::string(group));
  }
  return "";
}

}  // namespace

std::string to_text(const Refusal& refusal, const QueueId& id, std::string_view group, TimeNs now) {
  if (refusal.cause == Refusal::Cause::kUnavailable) {
    return "the counts of the budgets are not known yet";
  }
  const std::string holder = holder_of(refusal, id, group);
  const std::string tasks = id.kind == TaskKind::kWorkflow ? "workflow tasks" : "activity tasks";
  if (refusal.cause == Refusal::Cause::kTurn) {
    return absl::StrCat(holder, ": what is left of ", refusal.limit, " ", tasks,
                        " goes to queues that have waited longer");
  }
  if (!is_rate(refusal.budget)) {
    return absl::StrCat(holder, ": ", refusal.used, " of ", refusal.limit, " ", tasks,
                        " are leased; it has room when one of them ends");
  }
  const double seconds =
      static_cast<double>(std::max<DurationNs>(0, refusal.retry_at - now)) / kSecond;
  return absl::StrCat(holder, ": ", refusal.used, " of ", refusal.limit, " ", tasks,
                      " were dispatched in ",
                      refusal.span == Span::kFixed ? "this minute" : "the last 60 s",
                      absl::StrFormat("; it has room in %.1f s", seconds));
}

}  // namespace fairlead::admission
