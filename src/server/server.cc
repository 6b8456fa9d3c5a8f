#include "server/server.h"

#include <absl/synchronization/mutex.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "api/durable/codec.h"
#include "api/durable/door.h"
#include "api/fairlead/task_queue_service.h"
#include "api/temporal/codec.h"
#include "api/temporal/grpc_transport.h"
#include "api/temporal/health.h"
#include "api/temporal/reflection.h"
#include "api/temporal/service.h"
#include "base/random.h"
#include "server/durable_routes.h"
#include "server/http_caller.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/version.h"
#include "shard/commit_log.h"
#include "shard/executor_thread.h"
#include "shard/node.h"
#include "store/keys.h"
#include "store/rocksdb_store.h"

namespace fairlead::server {

namespace {

constexpr DurationNs kStopGrace = 5 * kSecond;

constexpr char kWorkflowService[] = "temporal.api.workflowservice.v1.WorkflowService";
constexpr char kOperatorService[] = "temporal.api.operatorservice.v1.OperatorService";

// Signals that ask for an orderly stop, or to read the settings again. Blocked in every thread,
// taken by one that waits for them.
class Signals {
 public:
  Signals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }

  int wait() {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

 private:
  sigset_t signals_;
};

// Every connection is a file, and shells allow a thousand unless asked.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// The store's own name, made when the store was.
absl::StatusOr<std::string> cluster_id(store::Store& store, Random& random, TimeNs now) {
  const auto key = store::keys::meta("cluster_id");
  auto row = store.get(key);
  if (!row.ok()) return row.status();
  if (row->has_value()) return **row;
  auto id = make_uuid(random, now);
  store::WriteBatch batch;
  batch.put(key, id);
  if (const auto status = store.write(batch); !status.ok()) return status;
  if (const auto status = store.sync(); !status.ok()) return status;
  return id;
}

// All parts of a running server, in the order in which they depend on each other: what is declared
// first is destroyed last.
struct Parts {
  SystemClock clock;
  Random random = Random::from_system();
  api::TemporalCodec codec;
  durable::DurableCodec durable_codec;
  // Where the Durable Workflow door thinks. Replies come to it until the last commit is told.
  std::unique_ptr<shard::ExecutorThread> desk;
  std::unique_ptr<HttpCaller> caller;
  std::unique_ptr<store::RocksDbStore> store;
  std::unique_ptr<shard::ThreadedCommitLog> commits;
  std::vector<std::unique_ptr<shard::ExecutorThread>> executors;
  std::unique_ptr<shard::Node> node;
  api::RefusalCounts refusals;
  std::shared_ptr<ServerMetrics> metrics;
  api::Health health;
  std::unique_ptr<shard::WorkerRows> worker_rows;
  std::unique_ptr<shard::RunList> run_list;
  std::unique_ptr<shard::ScheduleList> schedule_list;
  std::unique_ptr<durable::Door> durable;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<api::GrpcTransport> grpc;
};

// A store that cannot keep what it is given makes every later answer a lie, so the process ends.
// What was acknowledged is on disk; what was not will be sent again.
void stop_on_store_failure(const absl::Status& status) {
  spdlog::critical("the store failed, stopping: {}", status.ToString());
  spdlog::shutdown();
  _exit(74);  // EX_IOERR
}

absl::Status open_engine(const Config& config, Parts& parts) {
  store::RocksDbOptions options;
  options.shard_count = config.engine.shards;
  auto store = store::open_rocksdb(config.server.data_dir, options);
  if (!store.ok()) return store.status();
  parts.store = std::move(*store);
  parts.commits =
      std::make_unique<shard::ThreadedCommitLog>(parts.store.get(), stop_on_store_failure);

  shard::Node::Parts node_parts;
  node_parts.store = parts.store.get();
  node_parts.commits = parts.commits.get();
  node_parts.clock = &parts.clock;
  node_parts.codec = &parts.codec;
  node_parts.durable_codec = &parts.durable_codec;
  parts.caller = std::make_unique<HttpCaller>(&parts.clock);
  node_parts.caller = parts.caller.get();
  const size_t threads = config.engine.executor_threads(std::thread::hardware_concurrency());
  for (size_t i = 0; i < threads; ++i) {
    parts.executors.push_back(std::make_unique<shard::ExecutorThread>(&parts.clock));
    node_parts.executors.push_back(parts.executors.back().get());
  }
  shard::NodeOptions node_options;
  node_options.shards = parts.store->shard_count();
  node_options.cache_bytes = config.engine.cache_bytes;
  node_options.requests_max = config.engine.requests_max;
  node_options.limits = config.limits;
  node_options.queue_settings = config.queues.settings();
  node_options.queue_exceptions = config.queues.exceptions;
  node_options.policies = std::make_shared<admission::Policies>(config.admission);
  parts.node = std::make_unique<shard::Node>(node_options, node_parts, Random(parts.random.next()));
  return parts.node->open();
}

absl::Status open_http(const Config& config, Parts& parts) {
  parts.metrics = std::make_shared<ServerMetrics>(parts.node.get(), parts.commits.get(),
                                                  &parts.refusals, &parts.clock);
  HttpRoutes routes;
  add_operator_routes([health = &parts.health] { return health->is_serving(); }, parts.metrics,
                      &routes);
  durable::Options durable = config.durable;
  durable.seed = parts.random.next();
  durable.version = std::string(version());
  parts.desk = std::make_unique<shard::ExecutorThread>(&parts.clock);
  parts.worker_rows = std::make_unique<shard::WorkerRows>(parts.store.get(), parts.commits.get());
  parts.run_list = std::make_unique<shard::RunList>(
      parts.store.get(), parts.commits.get(), static_cast<uint16_t>(parts.node->shards().size()));
  parts.schedule_list = std::make_unique<shard::ScheduleList>(
      parts.store.get(), parts.commits.get(), static_cast<uint16_t>(parts.node->shards().size()));
  durable::Door::Parts door;
  door.engine = parts.node.get();
  door.durable = parts.node.get();
  door.workers = parts.worker_rows.get();
  door.runs = parts.run_list.get();
  door.scheduling = parts.node.get();
  door.schedules = parts.schedule_list.get();
  door.executor = parts.desk.get();
  door.is_serving = [health = &parts.health] { return health->is_serving(); };
  parts.durable = std::make_unique<durable::Door>(durable, std::move(door));
  add_durable_routes(parts.durable.get(), &routes);
  HttpOptions http;
  http.bind_address = config.server.bind;
  http.port = config.server.http_port;
  auto server = HttpServer::start(http, std::move(routes));
  if (!server.ok()) return server.status();
  parts.http = std::move(*server);
  return absl::OkStatus();
}

absl::Status open_grpc(const Config& config, Parts& parts) {
  auto id = cluster_id(*parts.store, parts.random, parts.clock.now());
  if (!id.ok()) return id.status();
  api::ServiceOptions service;
  service.limits = config.limits;
  service.polls_max = static_cast<int>(config.engine.polls_per_namespace_max);
  service.seed = parts.random.next();
  service.cluster_id = *id;
  service.shards = parts.store->shard_count();
  service.store_name = "rocksdb";
  auto addresses = api::CallbackAddresses::parse(config.callbacks.allowed_addresses);
  if (!addresses.ok()) return addresses.status();
  service.callback_addresses = std::move(*addresses);

  api::MethodTable methods;
  api::StreamTable streams;
  api::register_service(methods, *parts.node, service);
  api::register_task_queue_service(methods, *parts.node, service);
  parts.health.add_to(&methods, &streams);
  api::add_reflection({kWorkflowService, kOperatorService, api::kTaskQueueService}, &streams);

  api::GrpcOptions grpc;
  grpc.bind_address = config.server.bind;
  grpc.port = config.server.grpc_port;
  grpc.refusals = &parts.refusals;
  auto transport = api::GrpcTransport::start(grpc, std::move(methods), std::move(streams));
  if (!transport.ok()) return transport.status();
  parts.grpc = std::move(*transport);
  return absl::OkStatus();
}

// Whoever finds the gRPC port open finds the HTTP port open, too; that one says by itself whether
// the server is ready.
absl::Status open_doors(const Config& config, Parts& parts) {
  if (absl::Status status = open_http(config, parts); !status.ok()) return status;
  return open_grpc(config, parts);
}

// Budgets and what holds for queues change while the server runs; everything else waits for a
// restart. A mistake changes nothing.
void reload(const ReadConfig& read_again, Parts& parts) {
  const auto config = read_again();
  if (!config.ok()) {
    spdlog::error("settings were not read again: {}", std::string(config.status().message()));
    return;
  }
  parts.node->admission().set_policies(std::make_shared<admission::Policies>(config->admission));
  parts.node->set_queue_settings(config->queues.settings(), config->queues.exceptions);
  spdlog::info("[admission], [queues] and [matching] were read again");
}

// Also of a server that could not open all its doors.
void close_server(Parts& parts) {
  parts.health.set_serving(false);
  // Polls are answered first, so that workers learn at once and no task is given to them any more;
  // then the door gives the calls in hand time to be answered.
  std::promise<void> closed;
  parts.durable->close();
  parts.node->close([&closed] { closed.set_value(); });
  closed.get_future().wait();
  if (parts.grpc != nullptr) parts.grpc->shutdown(kStopGrace);
  if (parts.http != nullptr) parts.http->stop(kStopGrace);
  // What the door still has in hand is done with the engine before that goes; answers that come
  // later find nobody.
  parts.durable.reset();
  std::promise<void> idle;
  parts.desk->post([&idle] { idle.set_value(); });
  idle.get_future().wait();
  // What callbacks are under way is made again when the server is back.
  parts.caller->stop();
  // Executors end before the node that their jobs touch; the commit log ends last and tells
  // everyone what became durable.
  parts.executors.clear();
  parts.commits.reset();
}

}  // namespace

int run_server(const Config& config, const ReadConfig& read_again) {
  Signals signals;
  allow_many_files();
  // gRPC's locks would otherwise keep a graph of who waits for whom.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Parts parts;
  if (const auto status = open_engine(config, parts); !status.ok()) {
    spdlog::critical("{}", std::string(status.message()));
    return 1;
  }
  if (const auto status = open_doors(config, parts); !status.ok()) {
    spdlog::critical("{}", std::string(status.message()));
    close_server(parts);
    return 1;
  }
  parts.health.set_serving(true);
  spdlog::info("gRPC on {}, HTTP on {}, data in {}",
               host_port(config.server.bind, static_cast<uint16_t>(parts.grpc->port())),
               host_port(config.server.bind, static_cast<uint16_t>(parts.http->port())),
               config.server.data_dir);
  int signal = signals.wait();
  for (; signal == SIGHUP; signal = signals.wait()) reload(read_again, parts);
  spdlog::info("stopping ({})", signal == SIGINT ? "SIGINT" : "SIGTERM");
  close_server(parts);
  spdlog::info("stopped");
  return 0;
}

}  // namespace fairlead::server
