#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/activity_worker.h"
#include "simulation/client.h"
#include "simulation/durable_crowd.h"
#include "simulation/lone.h"
#include "simulation/server.h"
#include "simulation/workflow_worker.h"
#include "simulation/world.h"
#include "store/simulated_store.h"

namespace fairlead::sim {

struct SimulationOptions {
  uint64_t seed = 1;
  bool has_crashes = true;
  bool prints_trace = false;
  Sabotage sabotage = Sabotage::kNone;
};

struct SimulationResult {
  std::string failure;  // empty: every promise was kept
  uint64_t hash = 0;
  uint64_t steps = 0;
  uint64_t workflows = 0;
  uint64_t crashes = 0;
  DurationNs time = 0;
  FairCount fair;
};

// A bad day of a server, from a seed:
//
//   storm    clients start workflows and trouble them; workers fail, forget, die and come back; the
//            wire loses messages; the server crashes and comes back
//   calm     nothing goes wrong any more: every workflow has to end, and what was promised is
//   looked
//            up in the histories
//   silence  the clock passes the retention time: nothing may be left
class Simulation {
 public:
  Simulation(const SimulationOptions& options, Probes* probes);
  ~Simulation();

  SimulationResult run();

 private:
  void storm();
  void calm();
  void settle();
  void silence();
  void delete_by_hand();
  void delete_run(const std::string& workflow_id, const std::string& run_id);

  // Runs until the time or the first failure.
  void run_until(TimeNs end);
  void open_server();
  history::CallbackOutcome receive(const history::Outgoing& request);
  void crash();
  void plan_crash();
  void check_rows(const char* when, bool all_closed);
  void check_rows_of_budgets();
  void add_workflow_worker();
  void add_activity_worker();
  void trouble_workers();
  void set_rules();
  void reweigh_keys();
  void read_to_end(const std::string& run_id, std::string page_token,
                   std::shared_ptr<Events> events);

  const SimulationOptions options_;
  Probes* const probes_;
  Scheduler scheduler_;
  Trace trace_;
  store::SimulatedStore store_;
  Wire wire_;
  Auditor auditor_;
  World world_;
  CapWatch watch_;
  FairWatch fair_watch_;
  ServerOptions server_options_;
  Owner last_server_ = kNobody;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<LoneClient> lone_client_;
  std::unique_ptr<DurableCrowd> durable_;
  ProcessPtr reader_;
  std::vector<std::unique_ptr<WorkflowWorker>> workflow_workers_;
  std::vector<std::unique_ptr<ActivityWorker>> activity_workers_;
  bool is_stormy_ = true;
  uint64_t crashes_ = 0;
  uint64_t crash_at_step_ = 0;  // 0: none planned
  bool crash_wants_risk_ = false;
  size_t settled_ = 0;
};

}  // namespace fairlead::sim
