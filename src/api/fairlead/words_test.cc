#include "api/fairlead/words.h"

#include "api/fairlead/task_queue.pb.h"
#include "gtest/gtest.h"

namespace fairlead::api::queues {
namespace {

TEST(Words, DurationsAreToldAsPeopleDo) {
  EXPECT_EQ(human_duration(-5), "0 s");
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(1), "1 ms");
  EXPECT_EQ(human_duration(42 * kMillisecond), "42 ms");
  EXPECT_EQ(human_duration(400 * kMillisecond), "0.4 s");
  EXPECT_EQ(human_duration(3 * kSecond), "3 s");
  EXPECT_EQ(human_duration(3 * kSecond + 999 * kMillisecond), "3.9 s");
  EXPECT_EQ(human_duration(12 * kSecond + 700 * kMillisecond), "12 s");
  EXPECT_EQ(human_duration(kMinute), "1 min");
  EXPECT_EQ(human_duration(3 * kMinute + 5 * kSecond), "3 min 5 s");
  EXPECT_EQ(human_duration(2 * kHour + 4 * kMinute + kSecond), "2 h 4 min");
  EXPECT_EQ(human_duration(5 * kDay + 3 * kHour), "5 d 3 h");
  EXPECT_EQ(human_duration(5 * kDay + kMinute), "5 d");
}

TEST(Words, AnEnumsWordIsItsNameWithoutThePrefix) {
  const auto& type = *v1::Transition_descriptor();
  EXPECT_EQ(word_of(*type.FindValueByNumber(v1::TRANSITION_DRAIN_PER_LEVEL)), "drain-per-level");
  EXPECT_EQ(word_of(*v1::ListKeysRequest::Order_descriptor()->FindValueByNumber(2)), "name");
  EXPECT_EQ(number_of_word(type, "drain-per-level"), v1::TRANSITION_DRAIN_PER_LEVEL);
  EXPECT_EQ(number_of_word(type, "default"), v1::TRANSITION_DEFAULT);
  EXPECT_EQ(number_of_word(type, "unspecified"), std::nullopt);
  EXPECT_EQ(number_of_word(type, "slowly"), std::nullopt);
}

TEST(Words, OneIsNotMany) {
  EXPECT_EQ(count_of(0, "task"), "0 tasks");
  EXPECT_EQ(count_of(1, "task"), "1 task");
  EXPECT_EQ(count_of(2, "task"), "2 tasks");
}

}  // namespace
}  // namespace fairlead::api::queues
