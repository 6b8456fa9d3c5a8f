#include "history/reset_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "history/chain.h"
#include "history/history_testing.h"
#include "history/rebuild.h"
#include "history/rebuild_testing.h"
#include "history/reset.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

model::Build build(const std::string& id, const std::string& checksum = "") {
  model::Build build;
  build.set_build_id(id);
  build.set_binary_checksum(checksum);
  return build;
}

// A worker with this code is given a workflow task and completes it.
void work(Bench& bench, const model::Build& code, std::vector<model::Event> commands = {}) {
  if (!bench.run.state.has_workflow_task()) bench.signal();
  bench.take_task();
  bench.step([&](Transaction& tx) {
    const int64_t id = complete_workflow_task(tx, "", code);
    apply_commands(tx, std::move(commands), id);
  });
}

std::vector<std::string> points_of(const model::RunState& state) {
  std::vector<std::string> points;
  for (const auto& point : state.reset_points()) {
    points.push_back(absl::StrCat(point.run_id(), point.run_id().empty() ? "" : ":",
                                  point.build().build_id(), point.build().binary_checksum(), "@",
                                  point.completed_id()));
  }
  return points;
}

model::Event continue_as_new() {
  model::Event command;
  command.set_kind(model::WORKFLOW_CONTINUED_AS_NEW);
  command.mutable_workflow_closed()->mutable_next();
  return command;
}

// Who has to undo what a bad build did wants to know where it began.
TEST(ResetPoints, AreWhereEachBuildBegan) {
  Bench bench;
  bench.start();
  work(bench, build("v1"));
  work(bench, build("v1"));
  work(bench, build("v2"));
  work(bench, build("v1"));
  work(bench, build("", "checksum"));
  EXPECT_THAT(points_of(bench.run.state), ElementsAre("v1@4", "v2@12", "checksum@20"));
  EXPECT_EQ(bench.run.state.reset_points(1).created_ns(), bench.now);
}

// A child that runs, or a signal that is under way, would not know of the new run.
TEST(ResetPoints, SayWhetherSomethingWasUnderWay) {
  Bench bench;
  bench.start();
  model::Event signal;
  signal.set_kind(model::SIGNAL_EXTERNAL_INITIATED);
  signal.mutable_external_event()->mutable_run()->set_workflow_id("other");
  work(bench, build("v1"), {signal});
  work(bench, build("v2"));
  EXPECT_TRUE(bench.run.state.reset_points(0).is_resettable()) << "before what it asked for";
  EXPECT_FALSE(bench.run.state.reset_points(1).is_resettable());
}

TEST(ResetPoints, OfALongLineTheLastOnesAreKept) {
  Bench bench;
  bench.start();
  for (int i = 1; i <= 23; ++i) work(bench, build(absl::StrCat("v", i)));
  ASSERT_EQ(bench.run.state.reset_points_size(), 20);
  EXPECT_EQ(bench.run.state.reset_points(0).build().build_id(), "v4");
  EXPECT_EQ(bench.run.state.reset_points(19).build().build_id(), "v23");
}

TEST(ResetPoints, GoOnThroughAChainUntilTheirRunsAreDeleted) {
  Bench first;
  first.start();
  first.now += 2 * kSecond;
  work(first, build("v1"), {continue_as_new()});
  Bench second;
  second.run.state.Clear();
  second.now = first.now;
  continue_chain(first.run.state, *first.successor, {}, &second.run.state);
  second.start();
  EXPECT_THAT(points_of(second.run.state), ElementsAre("run-1:v1@4"));
  EXPECT_EQ(second.run.state.reset_points(0).expires_ns(), first.run.state.delete_at_ns());
  EXPECT_EQ(second.events[0].workflow_started().reset_points(0).run_id(), "run-1");

  work(second, build("v1"));
  work(second, build("v2"));
  EXPECT_THAT(points_of(second.run.state), ElementsAre("run-1:v1@4", "v2@8"));
  Rebuild rebuild(identity_of(second.run.state));
  for (const auto& event : second.events) rebuild.apply(event, 1);
  EXPECT_EQ(points_of(rebuild.run().state), points_of(second.run.state));

  second.now += 2 * kDay;
  work(second, build("v2"), {continue_as_new()});
  model::RunState third;
  continue_chain(second.run.state, *second.successor, {}, &third);
  EXPECT_THAT(points_of(third), ElementsAre("run-2:v2@8"));
}

// The new run has the points of the events that it shares, as its own.
TEST(ResetPoints, ThoseBeforeAResetAreTheNewRuns) {
  Bench base;
  base.start();
  work(base, build("v1"));
  work(base, build("v2"));
  const Fork fork{"run-1", "run-9", "request", "v2 is bad"};
  Rebuild rebuild(descendant(base.run.state, 8, fork));
  for (const auto& event : base.events) {
    if (event.id() < 8) rebuild.apply(event, 1);
  }
  EXPECT_THAT(points_of(rebuild.run().state), ElementsAre("v1@4"));
}

}  // namespace
}  // namespace fairlead::history
