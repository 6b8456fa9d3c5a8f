#include "server/json.h"

#include "api/fairlead/task_queue.pb.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

// Scripts are written against this text: every field, always, under its own name.
TEST(Json, EveryFieldIsThereAndNumbersAreNumbers) {
  v1::Key key;
  key.set_key("a \"b\"\n");
  key.set_waiting(int64_t{1} << 40);
  key.add_waiting_by_level(1);
  key.add_waiting_by_level(2);
  key.mutable_oldest_age()->set_seconds(2);
  key.mutable_oldest_age()->set_nanos(500'000'000);
  key.set_dispatched(~uint64_t{0});
  key.set_share(1.0 / 3);
  key.set_weight_source(v1::WEIGHT_SOURCE_OVERRIDE);
  key.add_holds(v1::HOLD_OWN_RATE);
  EXPECT_EQ(to_json(key), R"({
  "key": "a \"b\"\n",
  "waiting": 1099511627776,
  "waiting_by_level": [
    1,
    2
  ],
  "oldest_age": 2.5,
  "running": 0,
  "dispatched": 18446744073709551615,
  "share": 0.3333333333333333,
  "ideal_share": 0,
  "lag": 0,
  "weight": 0,
  "weight_source": "override",
  "holds": [
    "own-rate"
  ],
  "throttled_for": null,
  "is_shared": false,
  "shared_line": ""
}
)");
}

TEST(Json, WhatIsAbsentIsNullAndWhatIsZeroIsZero) {
  v1::KeyConfig config;
  config.set_key("a");
  config.set_weight(33.3f);
  config.set_running_max(0);
  config.mutable_pause()->mutable_since()->set_seconds(1'700'000'000);
  EXPECT_EQ(to_json(config), R"({
  "key": "a",
  "weight": 33.3,
  "running_max": 0,
  "rate_per_second": null,
  "pause": {
    "reason": "",
    "identity": "",
    "since": "2023-11-14T22:13:20Z"
  },
  "is_draining": false
}
)");
}

TEST(Json, EmptyListsAndUnknownWordsDoNotBreakIt) {
  v1::ListTaskQueuesResponse list;
  EXPECT_EQ(to_json(list), "{\n  \"task_queues\": [],\n  \"next_page_token\": \"\"\n}\n");
  v1::TaskQueue queue;
  queue.set_type(static_cast<v1::TaskQueueType>(77));
  EXPECT_EQ(to_json(queue), "{\n  \"namespace\": \"\",\n  \"name\": \"\",\n  \"type\": 77\n}\n");
}

}  // namespace
}  // namespace fairlead::server
