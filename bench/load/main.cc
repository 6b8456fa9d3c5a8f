// Puts load on a server that speaks Temporal's gRPC API and says what it did and what it cost.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "load/scenarios.h"

namespace {

using namespace fairlead::load;

struct GlobalOptions {
  std::string address = "127.0.0.1:7233";
  std::string name_space = "default";
  int server_pid = 0;
  int connections = 1;
  int64_t timeout_s = 300;
  bool makes_namespace = false;
  bool is_json = false;
};

void add_global(CLI::App* app, GlobalOptions* options) {
  app->add_option("--address", options->address, "host:port of the server")->capture_default_str();
  app->add_option("--namespace", options->name_space)->capture_default_str();
  app->add_flag("--make-namespace", options->makes_namespace, "register it if it is not there");
  app->add_option("--server-pid", options->server_pid,
                  "the server's process on this machine, to read its CPU time and memory");
  app->add_option("--connections", options->connections,
                  "sockets, taking turns; an SDK has one per process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--timeout", options->timeout_s, "seconds after which the run has failed")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app->add_flag("--json", options->is_json, "print one JSON object instead of lines");
}

template <typename Value>
void add_count(CLI::App* app, const char* name, Value* value, const char* help, int64_t max) {
  app->add_option(name, *value, help)->check(CLI::Range(int64_t{0}, max))->capture_default_str();
}

CLI::App* add_workflows(CLI::App* app, WorkflowsOptions* options) {
  auto* sub = app->add_subcommand("workflows", "workflows with one activity, in a closed loop");
  add_count(sub, "--count", &options->count, "workflows to run", 10'000'000);
  add_count(sub, "--concurrency", &options->concurrency, "workflows in flight", 100'000);
  add_count(sub, "--warmup", &options->warmup, "workflows before the measurement", 1'000'000);
  add_count(sub, "--pollers", &options->pollers, "polls per queue", 10'000);
  add_count(sub, "--seconds", &options->seconds_max, "start no workflow after this", 3600);
  return sub;
}

CLI::App* add_latency(CLI::App* app, LatencyOptions* options) {
  auto* sub = app->add_subcommand("latency", "one workflow at a time on an idle server");
  add_count(sub, "--count", &options->count, "workflows to run", 1'000'000);
  add_count(sub, "--warmup", &options->warmup, "workflows before the measurement", 100'000);
  add_count(sub, "--pollers", &options->pollers, "polls per queue", 10'000);
  add_count(sub, "--pause", &options->pause_ms, "milliseconds between two workflows", 10'000);
  return sub;
}

CLI::App* add_backlog(CLI::App* app, BacklogOptions* options) {
  auto* sub = app->add_subcommand("backlog", "queue tasks without workers, then drain them");
  add_count(sub, "--count", &options->count, "tasks to queue", 10'000'000);
  add_count(sub, "--concurrency", &options->concurrency, "starts in flight", 100'000);
  add_count(sub, "--pollers", &options->pollers, "polls while draining", 10'000);
  add_count(sub, "--per-workflow", &options->activities_per_workflow,
            "activities that one workflow schedules", 1000);
  const std::map<std::string, bool> kinds{{"workflow", false}, {"activity", true}};
  sub->add_option("--kind", options->is_activity, "workflow or activity tasks")
      ->transform(CLI::CheckedTransformer(kinds));
  return sub;
}

CLI::App* add_polls(CLI::App* app, PollsOptions* options) {
  auto* sub =
      app->add_subcommand("polls", "parked polls: what they cost, and that one task wakes one");
  add_count(sub, "--count", &options->count, "polls to park", 1'000'000);
  add_count(sub, "--seconds", &options->seconds, "how long to watch them", 3600);
  add_count(sub, "--ramp", &options->ramp_per_s, "polls parked per second", 1'000'000);
  return sub;
}

CLI::App* add_fairness(CLI::App* app, FairnessOptions* options) {
  auto* sub = app->add_subcommand("fairness", "whose turn it is, and how far from the ideal");
  sub->add_option_function<std::vector<std::string>>(
         "--keys",
         [options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             if (KeyGroup::parse(text, &options->groups.emplace_back())) continue;
             throw CLI::ValidationError("--keys", text + " is not KEYSxTASKS[xWEIGHT[xPRIORITY]]");
           }
         },
         "KEYSxTASKS[xWEIGHT[xPRIORITY]], as 300x10; may be repeated")
      ->required();
  add_count(sub, "--per-workflow", &options->activities_per_workflow,
            "activities that one workflow schedules", 2000);
  add_count(sub, "--seconds", &options->seconds_max, "give up on the rest after this", 3600);
  add_count(sub, "--turn-after", &options->turn_after,
            "so many dispatches before what follows happens", 10'000'000);
  sub->add_option("--reweight", options->settings.weights, "weights for the first keys")
      ->delimiter(',');
  sub->add_option("--key-rps", options->settings.key_rps, "limit for a key of weight 1");
  add_count(sub, "--more", &options->more_tasks_per_key, "tasks that every key gets then", 1000);
  sub->add_flag("--restart", options->has_restart, "ask for a restart of the server, and wait");
  return sub;
}

CLI::App* add_idle(CLI::App* app, IdleOptions* options) {
  auto* sub = app->add_subcommand("idle", "the server's CPU and memory while nothing happens");
  add_count(sub, "--seconds", &options->seconds, "how long to watch", 3600);
  return sub;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Load for servers that speak Temporal's gRPC API", "fairlead_load"};
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions global;
  WorkflowsOptions workflows;
  LatencyOptions latency;
  BacklogOptions backlog;
  PollsOptions polls;
  FairnessOptions fairness;
  IdleOptions idle;
  add_global(&app, &global);
  CLI::App* const run_as_workflows = add_workflows(&app, &workflows);
  CLI::App* const run_as_latency = add_latency(&app, &latency);
  CLI::App* const run_as_backlog = add_backlog(&app, &backlog);
  CLI::App* const run_as_polls = add_polls(&app, &polls);
  CLI::App* const run_as_fairness = add_fairness(&app, &fairness);
  add_idle(&app, &idle);
  CLI11_PARSE(app, argc, argv);

  if (global.server_pid != 0 && !read_process(global.server_pid)) {
    std::fprintf(stderr, "fairlead_load: there is no process %d\n", global.server_pid);
    return 1;
  }
  Transport transport(global.address, global.connections);
  if (!transport.connect_all(15 * fairlead::kSecond)) {
    std::fprintf(stderr, "fairlead_load: nobody answers GetSystemInfo at %s\n",
                 global.address.c_str());
    return 1;
  }
  Requests requests(Names::fresh(global.name_space));
  Bench bench{&transport, &requests, global.server_pid, global.timeout_s * fairlead::kSecond,
              {},         {}};
  if (global.makes_namespace && !make_namespace(&bench)) {
    std::fprintf(stderr, "fairlead_load: the namespace %s cannot be made\n",
                 global.name_space.c_str());
    return 1;
  }
  bench.report.text("scenario", app.get_subcommands().front()->get_name());
  const bool is_complete = run_as_workflows->parsed()  ? run_workflows(&bench, workflows)
                           : run_as_latency->parsed()  ? run_latency(&bench, latency)
                           : run_as_backlog->parsed()  ? run_backlog(&bench, backlog)
                           : run_as_polls->parsed()    ? run_polls(&bench, polls)
                           : run_as_fairness->parsed() ? run_fairness(&bench, fairness)
                                                       : run_idle(&bench, idle);
  bench.report.count("errors", bench.errors.calls);
  if (bench.errors.calls > 0) bench.report.text("first_error", bench.errors.first);
  bench.report.text("complete", is_complete ? "yes" : "no");
  bench.report.print(global.is_json);
  return is_complete ? 0 : 1;
}
