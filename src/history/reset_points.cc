#include "history/reset_points.h"

namespace fairlead::history {

namespace {

// Every step writes a run's state: a worker that calls itself something else each time must not
// make it grow.
constexpr int kPointsMax = 20;

bool is_same(const model::Build& a, const model::Build& b) {
  return a.binary_checksum() == b.binary_checksum() && a.build_id() == b.build_id();
}

}  // namespace

void add_reset_point(Run& run, const model::Build& build, int64_t completed_id, TimeNs at) {
  auto& points = *run.state.mutable_reset_points();
  for (const auto& point : points) {
    if (is_same(point.build(), build)) return;
  }
  if (points.size() >= kPointsMax) points.DeleteSubrange(0, points.size() - kPointsMax + 1);
  auto& point = *points.Add();
  *point.mutable_build() = build;
  point.set_completed_id(completed_id);
  point.set_created_ns(at);
  point.set_is_resettable(run.children.empty() && run.externals.empty());
}

void hand_on_reset_points(const model::RunState& last, model::RunState* next) {
  for (const auto& point : last.reset_points()) {
    if (point.expires_ns() != 0 && point.expires_ns() < last.close_ns()) continue;
    auto& handed = *next->add_reset_points();
    handed = point;
    if (!point.run_id().empty()) continue;
    handed.set_run_id(last.run_id());
    handed.set_expires_ns(last.delete_at_ns());
  }
}

}  // namespace fairlead::history
