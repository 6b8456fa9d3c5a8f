#pragma once

#include <memory>
#include <vector>

#include "api/durable/codec.h"
#include "api/durable/door.h"
#include "api/temporal/call.h"
#include "api/temporal/codec.h"
#include "shard/node.h"
#include "simulation/caller.h"
#include "simulation/cap_watch.h"
#include "simulation/commit_log.h"
#include "simulation/fair_watch.h"
#include "simulation/probes.h"
#include "simulation/scheduler.h"
#include "store/simulated_store.h"

namespace fairlead::sim {

struct ServerOptions {
  uint16_t shards = 4;
  int executors = 2;
  size_t cache_bytes = 1 << 20;
  Sabotage sabotage = Sabotage::kNone;
  std::shared_ptr<const admission::Policies> policies = std::make_shared<admission::Policies>();
  Receiver receiver;  // of callbacks
  CapWatch* watch = nullptr;
  FairWatch* fair_watch = nullptr;
};

// The whole server but its sockets, from the moment it opens the store until it dies. There is no
// orderly stop: destroying it is the crash.
class Server {
 public:
  Server(Scheduler* scheduler, Owner owner, store::SimulatedStore* store, Probes* probes,
         const ServerOptions& options, Random random);
  ~Server();

  Owner owner() const { return owner_; }
  durable::Door& door() { return *door_; }
  const api::Handler* find(std::string_view method) const { return methods_.find(method); }

 private:
  void forget_running(const CapWatch& watch);

  Scheduler* const scheduler_;
  const Owner owner_;
  Probes* const probes_;
  const SimExecutor* current_ = nullptr;
  const api::TemporalCodec codec_;
  const durable::DurableCodec durable_codec_;
  SimCommitLog commits_;
  SimCaller caller_;
  std::vector<std::unique_ptr<SimExecutor>> executors_;
  std::unique_ptr<shard::Node> node_;
  api::MethodTable methods_;
  std::unique_ptr<shard::WorkerRows> worker_rows_;
  std::unique_ptr<shard::RunList> run_list_;
  std::unique_ptr<shard::ScheduleList> schedule_list_;
  std::unique_ptr<durable::Door> door_;
};

}  // namespace fairlead::sim
