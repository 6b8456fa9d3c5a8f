#include "server/config.h"

#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "admission/read_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config_keys.h"

namespace fairlead::server {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Config> load_file(std::string text) {
  ConfigSources sources;
  sources.file_name = "fairlead.toml";
  sources.file_text = std::move(text);
  return Config::load(sources);
}

absl::StatusOr<Config> load_variable(std::string name, std::string value) {
  ConfigSources sources;
  sources.environment[std::move(name)] = std::move(value);
  return Config::load(sources);
}

absl::StatusOr<Config> load_flag(std::string key, std::string value) {
  ConfigSources sources;
  sources.flags.push_back({std::move(key), std::move(value)});
  return Config::load(sources);
}

std::string message(const absl::StatusOr<Config>& config) {
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(Config, WithoutAnySourceEverythingHasItsDefault) {
  const auto config = Config::load({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.bind, "127.0.0.1");
  EXPECT_EQ(config->server.grpc_port, 7233);
  EXPECT_EQ(config->server.http_port, 8233);
  EXPECT_EQ(config->server.data_dir, "fairlead-data");
  EXPECT_EQ(config->engine.shards, 16);
  EXPECT_EQ(config->log.level, "info");
  EXPECT_EQ(config->limits.blob_bytes, history::Limits{}.blob_bytes);
}

TEST(Config, AFileSetsItsKeysAndLeavesTheOthers) {
  const auto config = load_file(R"(
[server]
bind = "::1"
grpc_port = 9000
[limits]
blob_kib = 4
workflow_task_timeout_s = 20
[log]
format = "json"
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.bind, "::1");
  EXPECT_EQ(config->server.grpc_port, 9000);
  EXPECT_EQ(config->server.http_port, 8233);
  // Keys are in units that people read, fields in those that code computes with.
  EXPECT_EQ(config->limits.blob_bytes, 4096);
  EXPECT_EQ(config->limits.workflow_task_timeout, 20 * kSecond);
  EXPECT_EQ(config->log.format, "json");
}

TEST(Config, AFlagBeatsTheEnvironmentAndTheEnvironmentBeatsTheFile) {
  ConfigSources sources;
  sources.file_name = "fairlead.toml";
  sources.file_text = "server.grpc_port = 1001\nserver.http_port = 1002\nengine.shards = 3\n";
  sources.environment = {{"FAIRLEAD_SERVER_GRPC_PORT", "2001"},
                         {"FAIRLEAD_SERVER_HTTP_PORT", "2002"}};
  sources.flags = {{"server.grpc_port", "3001"}};
  const auto config = Config::load(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.grpc_port, 3001);
  EXPECT_EQ(config->server.http_port, 2002);
  EXPECT_EQ(config->engine.shards, 3);
}

// ---- what a file may not say --------------------------------------------------------------------

TEST(Config, AMisspeltKeyIsNamedWithItsPlaceAndTheNearestKey) {
  EXPECT_EQ(message(load_file("[server]\n\n  grcp_port = 1\n")),
            "fairlead.toml:3:3: unknown key server.grcp_port; did you mean server.grpc_port?");
}

TEST(Config, AKeyInTheWrongSectionIsSentToTheRightOne) {
  EXPECT_EQ(message(load_file("[engine]\ngrpc_port = 1\n")),
            "fairlead.toml:2:1: unknown key engine.grpc_port; did you mean server.grpc_port?");
  EXPECT_EQ(message(load_file("grpc_port = 1\n")),
            "fairlead.toml:1:1: unknown key grpc_port; did you mean server.grpc_port?");
}

TEST(Config, AKeyLikeNoneGetsNoSuggestion) {
  EXPECT_EQ(message(load_file("[server]\ncolour_of_the_bicycle = 1\n")),
            "fairlead.toml:2:1: unknown key server.colour_of_the_bicycle");
}

TEST(Config, AMisspeltSectionIsNamedWithTheNearestOne) {
  EXPECT_EQ(message(load_file("[sever]\n")),
            "fairlead.toml:1:2: unknown section sever; did you mean server?");
  EXPECT_EQ(message(load_file("[telemetry]\n")), "fairlead.toml:1:2: unknown section telemetry");
}

TEST(Config, AValueOfTheWrongTypeIsRefusedWithWhatIsWanted) {
  EXPECT_EQ(
      message(load_file("[server]\ngrpc_port = \"7233\"\n")),
      "fairlead.toml:2:13: server.grpc_port is a string, but wants an integer from 1 to 65535");
  EXPECT_EQ(message(load_file("[log]\nlevel = 3\n")),
            "fairlead.toml:2:9: log.level is an integer, but wants a string");
  EXPECT_EQ(message(load_file("[server]\nbind = [\"::1\"]\n")),
            "fairlead.toml:2:8: server.bind wants a string");
  EXPECT_EQ(message(load_file("[engine]\nshards = 1.5\n")),
            "fairlead.toml:2:10: engine.shards wants an integer from 1 to 1024");
}

TEST(Config, ANumberOutOfRangeIsRefusedWithTheRange) {
  EXPECT_EQ(message(load_file("[engine]\nshards = 0\n")),
            "fairlead.toml:2:10: engine.shards = 0 is not an integer from 1 to 1024");
  EXPECT_EQ(message(load_file("[server]\ngrpc_port = 65536\n")),
            "fairlead.toml:2:13: server.grpc_port = 65536 is not an integer from 1 to 65535");
}

TEST(Config, ATextThatMeansNothingIsRefusedWithTheChoices) {
  EXPECT_EQ(
      message(load_file("[log]\nlevel = \"loud\"\n")),
      "fairlead.toml:2:9: log.level = \"loud\" is not one of trace, debug, info, warn, error");
  EXPECT_THAT(message(load_file("[log]\nformat = \"xml\"\n")), HasSubstr("one of text, json"));
  EXPECT_THAT(message(load_file("[server]\nbind = \"localhost\"\n")),
              HasSubstr("not an IP address"));
  EXPECT_THAT(message(load_file("[server]\ndata_dir = \"\"\n")), HasSubstr("name a folder"));
}

TEST(Config, AFileThatIsNotTomlIsRefusedWithThePlace) {
  EXPECT_THAT(message(load_file("[server]\nbind = \n")), HasSubstr("fairlead.toml:2:8: "));
  EXPECT_THAT(message(load_file("[server]\nbind = \"a\"\nbind = \"b\"\n")),
              HasSubstr("fairlead.toml:3:"));
}

// ---- the environment ----------------------------------------------------------------------------

TEST(Config, AVariableOfNoKeyIsRefusedIfItBeginsLikeASection) {
  EXPECT_EQ(message(load_variable("FAIRLEAD_SERVER_GRPCPORT", "1")),
            "FAIRLEAD_SERVER_GRPCPORT: unknown setting; did you mean FAIRLEAD_SERVER_GRPC_PORT?");
  EXPECT_EQ(message(load_variable("FAIRLEAD_LIMITS_COLOUR_OF_THE_BICYCLE", "1")),
            "FAIRLEAD_LIMITS_COLOUR_OF_THE_BICYCLE: unknown setting");
}

// The test programs and build scripts have variables with our name in front, too.
TEST(Config, VariablesOfOthersAreNoneOfItsBusiness) {
  EXPECT_TRUE(load_variable("FAIRLEAD_CACHE", "somewhere").ok());
  EXPECT_TRUE(load_variable("PATH", "").ok());
}

TEST(Config, AnEmptyVariableIsAnUnsetOne) {
  const auto config = load_variable("FAIRLEAD_SERVER_BIND", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.bind, "127.0.0.1");
}

TEST(Config, ABadVariableIsNamed) {
  EXPECT_EQ(
      message(load_variable("FAIRLEAD_SERVER_GRPC_PORT", "70000")),
      "FAIRLEAD_SERVER_GRPC_PORT: server.grpc_port = 70000 is not an integer from 1 to 65535");
  EXPECT_EQ(message(load_variable("FAIRLEAD_ENGINE_SHARDS", "many")),
            "FAIRLEAD_ENGINE_SHARDS: engine.shards = \"many\" is not an integer from 1 to 1024");
}

// ---- flags --------------------------------------------------------------------------------------

TEST(Config, ABadFlagIsNamed) {
  EXPECT_EQ(message(load_flag("server.grpc_port", "7x")),
            "--grpc-port: server.grpc_port = \"7x\" is not an integer from 1 to 65535");
  EXPECT_THAT(message(load_flag("log.level", "")), HasSubstr("--log-level: log.level = \"\""));
  EXPECT_EQ(message(load_flag("server.grpcport", "1")),
            "command line: unknown key server.grpcport; did you mean server.grpc_port?");
}

// ---- the whole ----------------------------------------------------------------------------------

TEST(Config, TheTwoPortsMustDiffer) {
  EXPECT_EQ(message(load_file("server.grpc_port = 9\nserver.http_port = 9\n")),
            "server.grpc_port and server.http_port are both 9; give each a port of its own");
}

TEST(Config, TheDefaultTimeoutOfATaskMustNotExceedTheMost) {
  EXPECT_THAT(message(load_file("[limits]\nworkflow_task_timeout_max_s = 5\n")),
              HasSubstr("workflow_task_timeout_s = 10 is more than"));
}

// One typo in the table would make a key that nobody can set or that overwrites its neighbour.
TEST(Config, EveryKeyHasItsOwnNamesAndSetsItsOwnField) {
  std::set<std::string> names;
  for (const auto& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.environment_name()).second) << key.name;
    EXPECT_TRUE(names.insert(key.flag()).second) << key.name;
    const auto* number = std::get_if<ConfigKey::Number>(&key.value);
    if (number == nullptr) continue;

    Config config;
    const int64_t before = number->get(config) / number->unit;
    EXPECT_GE(before, number->min) << key.name;
    EXPECT_LE(before, number->max) << key.name;
    for (const int64_t value : {number->min, number->max}) {
      ASSERT_TRUE(key.set_number(value, &config).ok()) << key.name;
      EXPECT_EQ(number->get(config), value * number->unit) << key.name;
    }
    EXPECT_FALSE(key.set_number(number->min - 1, &config).ok()) << key.name;
    EXPECT_FALSE(key.set_number(number->max + 1, &config).ok()) << key.name;
    for (const auto& other : config_keys()) {
      const auto* neighbour = std::get_if<ConfigKey::Number>(&other.value);
      if (neighbour == nullptr || &other == &key) continue;
      EXPECT_EQ(neighbour->get(config), neighbour->get(Config{})) << key.name << other.name;
    }
  }
}

// The page that people copy from: complete, correct, and every value in it is the default.
TEST(Config, TheExampleFileShowsEveryKeyWithItsDefault) {
  std::ifstream file(FAIRLEAD_SOURCE_DIR "/docs/fairlead.example.toml");
  std::ostringstream text;
  text << file.rdbuf();
  ASSERT_TRUE(load_file(text.str()).ok()) << load_file(text.str()).status();

  for (const auto& key : config_keys()) {
    const bool is_text = std::holds_alternative<ConfigKey::Text>(key.value);
    const std::string quote = is_text ? "\"" : "";
    const std::string name(key.name.substr(key.name.find('.') + 1));
    const auto line = absl::StrCat("\n", name, " = ", quote, key.default_text(), quote, "\n");
    EXPECT_THAT(text.str(), HasSubstr(line));
  }
}

// Who moves from Durable Workflow's own server brings its variables along.
TEST(Config, DurableWorkflowsOwnVariablesAreUnderstoodAndOursWin) {
  ConfigSources sources;
  sources.environment = {{"DW_AUTH_DRIVER", "none"},
                         {"DW_WORKER_POLL_TIMEOUT", "7"},
                         {"DW_ACTIVITY_TASK_TIMEOUT", ""},
                         {"DW_ENV", "of the client"},
                         {"FAIRLEAD_DURABLE_POLL_TIMEOUT_S", "9"}};
  const auto config = Config::load(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->durable.auth_driver, "none");
  EXPECT_EQ(config->durable.poll_timeout, 9 * kSecond);
  EXPECT_EQ(config->durable.activity_lease, 300 * kSecond) << "empty is not set";
  sources.environment = {{"DW_AUTH_DRIVER", "kerberos"}};
  const auto refused = Config::load(sources);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("DW_AUTH_DRIVER: "));
}

// The page lists every variable, and what it lists is true.
TEST(Config, ThePageOfDurableWorkflowListsItsVariables) {
  std::ifstream file(FAIRLEAD_SOURCE_DIR "/docs/durable-workflow.md");
  std::set<std::string> keys;
  std::set<std::string> budgets;
  std::set<std::string> meaningless;
  bool is_there = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_there = line == "## Variables of the environment";
    if (!is_there || !line.starts_with("| `DW_")) continue;
    // | `DW_NAME` | `key` |, or a sentence in place of the key
    const std::vector<std::string> cells = absl::StrSplit(line, '`');
    if (cells.size() < 4) {
      meaningless.insert(cells[1]);
    } else if (cells[3] == "[admission]") {
      budgets.insert(cells[1]);
    } else {
      keys.insert(absl::StrCat(cells[1], " durable.", cells[3]));
    }
  }
  std::set<std::string> known;
  for (const auto& key : config_keys()) {
    if (key.alias.empty()) continue;
    known.insert(absl::StrCat(std::string(key.alias), " ", std::string(key.name)));
  }
  EXPECT_EQ(keys, known);
  for (const auto& name : budgets) {
    const bool is_json = name == "DW_TASK_QUEUE_ADMISSION_OVERRIDES";
    const bool is_window = absl::StrContains(name, "WINDOW");
    const std::string value = is_json ? "{}" : is_window ? "sliding" : "1";
    EXPECT_TRUE(admission::read_environment({{name, value}}).ok()) << name;
    const auto misspelt = admission::read_environment({{name + "X", value}});
    EXPECT_FALSE(misspelt.ok()) << name << " is not one of the budgets";
  }
  EXPECT_EQ(budgets.size(), 14U);
  EXPECT_EQ(meaningless, (std::set<std::string>(meaningless_variables().begin(),
                                                meaningless_variables().end())));
  ConfigSources sources;
  for (const auto& name : meaningless) sources.environment[name] = "1";
  EXPECT_TRUE(Config::load(sources).ok());
}

TEST(Config, APageOfHistoryIsNoLargerThanTheLargest) {
  ConfigSources sources;
  sources.environment = {{"DW_HISTORY_PAGE_SIZE_MAX", "10"}};
  EXPECT_THAT(std::string(Config::load(sources).status().message()),
              HasSubstr("durable.history_page_default = 500 is more than"));
}

TEST(Config, ExecutorsAreHalfOfTheCoresUnlessToldOtherwise) {
  Config::Engine engine;
  EXPECT_EQ(engine.executor_threads(1), 1U);
  EXPECT_EQ(engine.executor_threads(8), 4U);
  EXPECT_EQ(engine.executor_threads(0), 1U) << "the number of cores may be unknown";
  engine.executors = 3;
  EXPECT_EQ(engine.executor_threads(8), 3U);
}

TEST(Config, AnAddressOfTheSixthVersionStandsInBrackets) {
  EXPECT_EQ(host_port("127.0.0.1", 7233), "127.0.0.1:7233");
  EXPECT_EQ(host_port("::1", 7233), "[::1]:7233");
}

}  // namespace
}  // namespace fairlead::server
