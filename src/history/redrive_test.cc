#include "history/redrive.h"

#include "gmock/gmock.h"
#include "history/durable_testing.h"

namespace fairlead::history {
namespace {

using ::testing::ElementsAre;

model::Event past_event(const std::string& name, TimeNs time) {
  model::Event event;
  event.set_kind(model::MARKER_RECORDED);
  event.mutable_command_recorded()->set_name(name);
  event.set_time_ns(time);
  return event;
}

TEST(Redrive, BeginsWithThePastAndTakesTheNextStep) {
  DurableBench failed;
  failed.run.state.set_execution_timeout_ns(kHour);
  failed.run.state.set_execution_expiration_ns(failed.now + kHour);
  failed.run.state.mutable_parent()->mutable_run()->set_workflow_id("parent");
  failed.send("s1");
  failed.now += kDay;

  DurableBench bench;
  bench.run = {};
  bench.events.clear();
  bench.now = failed.now;
  bench.run.state = redriven_run(failed.run.state, "run-2");
  Redrive redrive;
  redrive.start_door = "input";
  redrive.events = {past_event("ActivityScheduled", 5), past_event("ActivityCompleted", 6)};
  redrive.steps = 1;
  bench.step([&](Transaction& tx) { redrive_run(tx, redrive); });

  EXPECT_THAT(bench.kinds(),
              ElementsAre(model::WORKFLOW_STARTED, model::MARKER_RECORDED, model::MARKER_RECORDED));
  EXPECT_EQ(bench.events[0].door(), "input");
  EXPECT_EQ(bench.events[2].time_ns(), 6) << "when it was";
  const auto& state = bench.run.state;
  EXPECT_FALSE(state.has_parent()) << "it was told of the failure";
  EXPECT_GT(state.execution_expiration_ns(), bench.now) << "its time begins anew";
  EXPECT_EQ(state.durable().run_number(), 2);
  EXPECT_EQ(state.durable().messages_size(), 1);
  ASSERT_TRUE(bench.has_task());
  bench.take_and_complete({schedule("again")});
  EXPECT_EQ(bench.run.find_activity("again")->scheduled().step().sequence(), 2);
}

}  // namespace
}  // namespace fairlead::history
