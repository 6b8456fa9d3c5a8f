// Plays the scenarios: scenarios FILE-OR-FOLDER…; the language is in README.md.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "scenarios/statements.h"

namespace fairlead::scenarios {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw Wrong(absl::StrCat(path.string(), ": cannot be read"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> files_in(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What is wrong with which line.
struct Complaint {
  const Line* line = nullptr;
  std::string what;
};

std::optional<Complaint> play(const Scenario& scenario, bool restarts_always) {
  Stage stage(restarts_always);
  for (const auto& line : scenario.lines) {
    try {
      Arguments arguments;
      find_statement(line.words, &arguments).act(stage, arguments);
    } catch (const Wrong& wrong) {
      return Complaint{&line, wrong.what()};
    }
  }
  return std::nullopt;
}

bool report(const std::string& what, const std::string& complaint) {
  std::printf("%s - scenarios: %s\n", complaint.empty() ? "ok" : "not ok",
              (complaint.empty() ? what : complaint).c_str());
  std::fflush(stdout);
  return complaint.empty();
}

std::string placed(const Scenario& scenario, const Complaint& complaint) {
  return absl::StrCat(scenario.file, ":", complaint.line->number, ": ", complaint.line->text, ": ",
                      complaint.what);
}

bool play_file(const fs::path& path) {
  bool is_good = true;
  for (const auto& scenario : read_scenarios(path.string(), read_file(path))) {
    for (const bool restarts_always : {false, true}) {
      const std::string what =
          absl::StrCat(path.filename().string(), ": ", scenario.title,
                       restarts_always ? " (and with a restart after every start)" : "");
      const auto complaint = play(scenario, restarts_always);
      std::string text;
      if (complaint.has_value()) text = placed(scenario, *complaint);
      if (complaint.has_value() && restarts_always) text += " (with a restart after every start)";
      is_good &= report(what, text);
    }
  }
  return is_good;
}

// ---- self-test ----------------------------------------------------------------------------------

// Scenarios that are wrong on purpose: each has to fail at the line before its `#!`, with the
// complaint that stands there.
bool play_wrong_file(const fs::path& path, std::set<std::string_view>* refuted) {
  bool is_good = true;
  for (const auto& scenario : read_scenarios(path.string(), read_file(path))) {
    const auto complaint = play(scenario, false);
    const auto wanted = std::find_if(scenario.lines.begin(), scenario.lines.end(),
                                     [](const Line& line) { return !line.complaint.empty(); });
    std::string text;
    if (wanted == scenario.lines.end()) {
      text = absl::StrCat(scenario.file, ":", scenario.number, ": nothing is said to be wrong");
    } else if (!complaint.has_value()) {
      text = absl::StrCat(scenario.file, ":", wanted->number,
                          ": passed, but should fail: ", wanted->complaint);
    } else if (complaint->line != &*wanted || complaint->what != wanted->complaint) {
      text = absl::StrCat(placed(scenario, *complaint), "; should fail in line ", wanted->number,
                          ": ", wanted->complaint);
    } else {
      Arguments arguments;
      try {
        refuted->insert(find_statement(wanted->words, &arguments).pattern);
      } catch (const Wrong&) {
      }
    }
    is_good &= report(absl::StrCat("wrong on purpose: ", scenario.title), text);
  }
  return is_good;
}

bool self_test(const fs::path& folder) {
  bool is_good = true;
  std::set<std::string_view> refuted;
  for (const auto& path : files_in(folder / "wrong")) is_good &= play_wrong_file(path, &refuted);
  const auto readme = read_file(folder / "README.md");
  std::string never_refuted;
  std::string not_in_readme;
  for (const auto& statement : statements()) {
    const std::string pattern = absl::StrReplaceAll(std::string(statement.pattern), {{" :", ":"}});
    if (statement.is_expectation() && !refuted.contains(statement.pattern)) {
      absl::StrAppend(&never_refuted, "\n  ", pattern);
    }
    if (readme.find(absl::StrCat("| `", absl::StrReplaceAll(pattern, {{"|", "\\|"}}), "` | ",
                                 std::string(statement.meaning))) == std::string::npos) {
      absl::StrAppend(&not_in_readme, "\n  ", pattern, ": ", std::string(statement.meaning));
    }
  }
  is_good &= report("every expectation can fail",
                    never_refuted.empty() ? "" : "never seen to fail:" + never_refuted);
  is_good &= report("README.md lists every statement",
                    not_in_readme.empty() ? "" : "not in README.md:" + not_in_readme);
  return is_good;
}

}  // namespace
}  // namespace fairlead::scenarios

int main(int argc, char** argv) {
  using namespace fairlead::scenarios;
  CLI::App app("Plays scenarios of a task queue, told in plain text");
  std::vector<std::string> paths;
  std::string tested;
  app.add_option("paths", paths, "files, or folders of *.txt")->check(CLI::ExistingPath);
  app.add_option("--self-test", tested, "the folder of scenarios whose wrong/ has to fail")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  bool is_good = true;
  try {
    if (!tested.empty()) is_good &= self_test(tested);
    for (const auto& path : paths) {
      for (const auto& file : files_in(path)) is_good &= play_file(file);
    }
  } catch (const Wrong& wrong) {
    is_good = report("", wrong.what());
  }
  return is_good ? 0 : 1;
}
