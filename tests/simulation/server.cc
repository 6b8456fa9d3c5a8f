#include "simulation/server.h"

#include "api/fairlead/task_queue_service.h"
#include "api/temporal/service.h"
#include "base/assert.h"
#include "shard/admission_desk.h"

namespace fairlead::sim {

Server::Server(Scheduler* scheduler, Owner owner, store::SimulatedStore* store, Probes* probes,
               const ServerOptions& options, Random random)
    : scheduler_(scheduler),
      owner_(owner),
      probes_(probes),
      commits_(scheduler, owner, store, probes, options.sabotage),
      caller_(scheduler, owner, options.receiver) {
  shard::Node::Parts parts;
  parts.store = store;
  parts.commits = &commits_;
  parts.clock = scheduler;
  parts.codec = &codec_;
  parts.durable_codec = &durable_codec_;
  parts.caller = &caller_;
  parts.observer = options.fair_watch;
  for (int i = 0; i < options.executors; ++i) {
    executors_.push_back(std::make_unique<SimExecutor>(scheduler, owner, &current_));
    parts.executors.push_back(executors_.back().get());
  }
  shard::NodeOptions node_options;
  node_options.shards = options.shards;
  node_options.cache_bytes = options.cache_bytes;
  node_options.policies = options.policies;
  if (options.sabotage == Sabotage::kInvertLevels) {
    node_options.queue_settings.lower_level_share = queue::kLowerLevelShareMax;
  }
  if (options.sabotage == Sabotage::kForgetKeys) {
    node_options.queue_settings.order = queue::Order::kFifo;
  }
  if (options.sabotage == Sabotage::kForgetWeights) {
    node_options.queue_settings.ignore_client_weights = true;
  }
  node_ = std::make_unique<shard::Node>(node_options, std::move(parts), Random(random.next()));
  commits_.watch = [watch = options.watch, fair = options.fair_watch](const auto& batch) {
    watch->saw(batch);
    fair->saw(batch);
  };
  FL_ASSERT(node_->open().ok(), "a store that survived a crash can be opened");
  if (options.sabotage == Sabotage::kForgetRunning) forget_running(*options.watch);
  api::ServiceOptions service;
  service.seed = random.next();
  service.shards = options.shards;
  service.callback_addresses = *api::CallbackAddresses::parse("*");
  api::register_service(methods_, *node_, service);
  api::register_task_queue_service(methods_, *node_, service);
  durable::Options door;
  door.auth_driver = "none";
  door.seed = random.next();
  door.workflow_lease = 8 * kSecond;
  door.activity_lease = 15 * kSecond;
  worker_rows_ = std::make_unique<shard::WorkerRows>(store, &commits_);
  run_list_ = std::make_unique<shard::RunList>(store, &commits_, options.shards);
  schedule_list_ = std::make_unique<shard::ScheduleList>(store, &commits_, options.shards);
  executors_.push_back(std::make_unique<SimExecutor>(scheduler, owner, &current_));
  door_ = std::make_unique<durable::Door>(
      door, durable::Door::Parts{node_.get(), node_.get(), worker_rows_.get(), run_list_.get(),
                                 node_.get(), schedule_list_.get(), executors_.back().get(),
                                 [] { return true; }});
}

// Tells every shard of the end of each workflow task that a worker has; only its queue's owner
// listens.
void Server::forget_running(const CapWatch& watch) {
  for (const auto& [row, out] : watch.out()) {
    if (out.queue.type != model::WORKFLOW_TASK) continue;
    for (const auto& shard : node_->shards()) {
      shard->executor().post([owner = shard.get(), out = out] {
        owner->queues().release({out.queue, out.queue.name}, out.key);
      });
    }
  }
}

// Nothing is told and nothing is saved. What the dead server still meant to do goes first, because
// it points into what goes after it.
Server::~Server() {
  for (const auto& shard : node_->shards()) {
    probes_->hit(Probe::kStaleTask, shard->stats().stale_tasks);
  }
  node_->admission().detach();
  scheduler_->drop(owner_);
  commits_.clear();
  for (auto& executor : executors_) executor->clear();
}

}  // namespace fairlead::sim
