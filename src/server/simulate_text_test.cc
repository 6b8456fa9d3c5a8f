#include "server/simulate_text.h"

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

simulate::Plan plan() {
  const auto plan = simulate::Plan::parse("plan.toml", R"(
title = "Two \"kinds\""
duration_s = 10
workers = 2
[[keys]]
name = "big"
weight = 3
backlog = 100
[[keys]]
name = "small"
count = 2
backlog = 4
service_ms = 500
)");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

// Twenty seconds of work: eight small tasks are four of them, sixteen big ones the rest, and a
// seventeenth has begun.
TEST(SimulateText, ATableHasARowForEachGroup) {
  const auto made = plan();
  EXPECT_EQ(simulation_text(made, simulate::simulate(made)),
            R"(Two "kinds"
10 s, 2 workers, 25 tasks dispatched, workers busy 100.0 % of their time

KEY             PRIORITY  WEIGHT  ARRIVED  DISPATCHED  WAITING   SHARE   IDEAL  FURTHEST  WORKERS  MEAN WAIT  LONGEST
big                    3       3      100          17       83  68.0 %  68.0 %      0.40      1.6     5.06 s  10.00 s
small (2 keys)         3       1        8           8        0  32.0 %  32.0 %      0.60      0.4     3.69 s   7.00 s

TASKS UNTIL     1 s  2 s  3 s  4 s  5 s  6 s  7 s  8 s  9 s  10 s
big               2    2    1    2    1    2    1    2    2     2
small (2 keys)    1    1    1    1    1    1    1    1    0     0
)");
}

TEST(SimulateText, JsonHasEveryKey) {
  const auto made = plan();
  google::protobuf::Struct read;
  const auto status = google::protobuf::util::JsonStringToMessage(
      simulation_json(made, simulate::simulate(made)), &read);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(read.fields().at("title").string_value(), "Two \"kinds\"");
  const auto& keys = read.fields().at("keys").list_value().values();
  ASSERT_EQ(keys.size(), 3);
  const auto& second = keys[1].struct_value().fields();
  EXPECT_EQ(second.at("key").string_value(), "small-1");
  EXPECT_EQ(second.at("dispatched").number_value(), 4);
  EXPECT_EQ(second.at("waiting").number_value(), 0);
}

}  // namespace
}  // namespace fairlead::server
