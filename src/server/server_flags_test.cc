#include "server/server_flags.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

using ::testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<Config> parse(const std::string& line, const Environment& environment = {}) {
  CLI::App app;
  ServerFlags flags(&app);
  app.parse(line);
  return flags.load(environment);
}

class ServerFlagsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/flags_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) {
    const std::string name = folder_ + "/fairlead.toml";
    std::ofstream(name) << text;
    return name;
  }

  std::string folder_;
};

TEST_F(ServerFlagsTest, EveryKeyIsAFlag) {
  const auto config = parse(
      "--grpc-port 1 --bind 0.0.0.0 --data-dir d --log-level debug "
      "--engine-shards 4 --limits-signals 7");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.grpc_port, 1);
  EXPECT_EQ(config->server.http_port, 8233);
  EXPECT_EQ(config->server.bind, "0.0.0.0");
  EXPECT_EQ(config->server.data_dir, "d");
  EXPECT_EQ(config->log.level, "debug");
  EXPECT_EQ(config->engine.shards, 4);
  EXPECT_EQ(config->limits.signals, 7);
}

TEST_F(ServerFlagsTest, TheFileIsTheOneOfTheFlagElseTheOneOfTheEnvironment) {
  const std::string file = write("server.grpc_port = 5\n");
  EXPECT_EQ(parse("--config " + file)->server.grpc_port, 5);
  EXPECT_EQ(parse("", {{"FAIRLEAD_CONFIG", file}})->server.grpc_port, 5);
  EXPECT_EQ(parse("--config " + file, {{"FAIRLEAD_CONFIG", "missing"}})->server.grpc_port, 5);
  EXPECT_EQ(parse("", {{"FAIRLEAD_CONFIG", ""}})->server.grpc_port, 7233);
}

// A flag's default is for the help only: if it were taken for a value, it would beat the file.
TEST_F(ServerFlagsTest, AFlagThatWasNotGivenLeavesTheFileAlone) {
  const std::string file = write("server.grpc_port = 5\nserver.http_port = 6\n");
  const auto config = parse("--http-port 7 --config " + file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.grpc_port, 5);
  EXPECT_EQ(config->server.http_port, 7);
}

TEST_F(ServerFlagsTest, AFileThatCannotBeReadIsAnErrorThatSaysWhy) {
  const auto missing = parse("--config " + folder_ + "/nothing.toml");
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("nothing.toml: cannot be read: No such file"));
  const auto is_folder = parse("--config " + folder_);
  EXPECT_THAT(std::string(is_folder.status().message()), HasSubstr("cannot be read"));
}

TEST_F(ServerFlagsTest, AnUnknownFlagIsRefusedAndTheHelpShowsDefaults) {
  EXPECT_THROW((void)parse("--colour red"), CLI::ExtrasError);
  CLI::App app;
  ServerFlags flags(&app);
  EXPECT_THAT(app.help(), HasSubstr("--grpc-port"));
  EXPECT_THAT(app.help(), HasSubstr("7233"));
}

}  // namespace
}  // namespace fairlead::server
