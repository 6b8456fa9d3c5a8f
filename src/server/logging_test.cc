#include "server/logging.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"

namespace fairlead::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Logging, EscapesWhatWouldEndOrBreakAString) {
  EXPECT_EQ(json_escape("plain, größe"), "plain, größe");
  EXPECT_EQ(json_escape("say \"a\\b\"\n\x01"), R"(say \"a\\b\"\n\u0001)");
}

// Collectors read line by line: whatever a message contains, it stays one line and one object.
TEST(Logging, JsonIsOneObjectALine) {
  CaptureStderr();
  set_up_logging({"info", "json"});
  spdlog::info("the \"id\" {}\nand more", 7);
  const std::string line = GetCapturedStderr();
  EXPECT_THAT(line, HasSubstr(R"("level":"info","message":"the \"id\" 7\nand more"})"));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(Logging, TextIsForPeopleAndTheLevelIsKept) {
  CaptureStderr();
  set_up_logging({"warn", "text"});
  spdlog::info("not this");
  spdlog::warn("but this");
  const std::string line = GetCapturedStderr();
  EXPECT_THAT(line, EndsWith(" warning but this\n"));
  EXPECT_EQ(line.find("not this"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::server
