#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "api/durable/avro.h"
#include "api/durable/codec.h"
#include "api/durable/door.h"
#include "api/durable/gzip.h"
#include "api/durable/json.h"
#include "gtest/gtest.h"
#include "shard/node.h"
#include "store/memory_store.h"

// The door with the whole engine behind it, on one thread and a clock that the test moves.
namespace fairlead::durable::testing {

class ManualClock final : public Clock {
 public:
  TimeNs now() override { return time; }
  TimeNs time = 1'700'000'000 * kSecond;
};

class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(ManualClock* clock) : clock_(clock) {}

  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void post_at(TimeNs at, Job job) override { later_.emplace(at, std::move(job)); }
  bool is_current() const override { return true; }

  void run() {
    while (true) {
      while (!later_.empty() && later_.begin()->first <= clock_->time) {
        jobs_.push_back(std::move(later_.begin()->second));
        later_.erase(later_.begin());
      }
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }
  // At most this many jobs: then the server may die.
  void run_some(int count) {
    while (!later_.empty() && later_.begin()->first <= clock_->time) {
      jobs_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    for (; count > 0 && !jobs_.empty(); --count) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }
  // Moves the clock from one thing that is due to the next.
  void advance(DurationNs duration) {
    const TimeNs end = clock_->time + duration;
    run();
    while (!later_.empty() && later_.begin()->first <= end) {
      clock_->time = std::max(clock_->time, later_.begin()->first);
      run();
    }
    clock_->time = end;
    run();
  }

 private:
  ManualClock* const clock_;
  std::deque<Job> jobs_;
  std::multimap<TimeNs, Job> later_;
};

class InstantCommitLog final : public shard::CommitLog {
 public:
  InstantCommitLog(store::Store* store, Executor* executor) : store_(store), executor_(executor) {}
  void write(const store::WriteBatch& batch) override { (void)store_->write(batch); }
  void after_durable(Job effect) override { executor_->post(std::move(effect)); }

 private:
  store::Store* const store_;
  Executor* const executor_;
};

// An answer, now or later.
struct Answer {
  std::optional<Response> response;
  json::object body;

  bool is_there() const { return response.has_value(); }
  int status() const { return response.has_value() ? response->status : 0; }
  std::string text(std::string_view name) const { return text_of(body, name); }
  const json::object& task() const { return body.at("task").as_object(); }
  bool has_task() const { return member(body, "task") != nullptr; }
};
using AnswerPtr = std::shared_ptr<Answer>;

// What the API's description says about the statuses of a route; null: it does not know the path or
// the method.
inline const json::object* documented(const std::string& method, const std::string& path) {
  static const json::object kApi = object_of(Door::openapi("0"));
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (const auto& entry : kApi.at("paths").as_object()) {
    const std::vector<std::string> pattern = absl::StrSplit(to_std(entry.key()), '/');
    bool matches = pattern.size() == parts.size();
    for (size_t i = 0; i < parts.size() && matches; ++i) {
      matches = pattern[i].starts_with('{') ? !parts[i].empty() : pattern[i] == parts[i];
    }
    if (!matches) continue;
    const auto* route = entry.value().as_object().if_contains(absl::AsciiStrToLower(method));
    if (route != nullptr) return &route->as_object().at("responses").as_object();
  }
  return nullptr;
}

class World {
 public:
  explicit World(Options options = {}, admission::Settings budgets = {})
      : options_(std::move(options)),
        policies_(std::make_shared<admission::Policies>(std::move(budgets))) {
    open();
  }

  // As after a crash: what is on disk is there, what was in memory is not.
  void restart() {
    door_.reset();
    node_.reset();
    executor = std::make_unique<ManualExecutor>(&clock);
    commits_.reset();
    open();
  }

  AnswerPtr ask(std::string method, std::string path, json::object body = {},
                std::vector<std::pair<std::string, std::string>> headers = {}) {
    return send(request(std::move(method), path, std::move(body), std::move(headers)));
  }
  static std::shared_ptr<const Request> request(
      std::string method, const std::string& path, json::object body = {},
      std::vector<std::pair<std::string, std::string>> headers = {}) {
    auto request = std::make_shared<Request>();
    request->method = std::move(method);
    request->path = path.substr(0, path.find('?'));
    if (path.find('?') != path.npos) request->query = path.substr(path.find('?') + 1);
    if (request->method != "GET" && (request->method != "DELETE" || !body.empty())) {
      request->body = json::serialize(body);
    }
    request->headers = std::move(headers);
    request->headers.emplace_back("Content-Type", "application/json");
    if (request->header("X-Durable-Workflow-Control-Plane-Version").empty()) {
      request->headers.emplace_back("X-Durable-Workflow-Control-Plane-Version", "2");
    }
    if (request->header("X-Durable-Workflow-Protocol-Version").empty()) {
      request->headers.emplace_back("X-Durable-Workflow-Protocol-Version", "1.20");
    }
    return request;
  }

  std::shared_ptr<const Request> last_request() const { return last_; }
  void hang_up() {
    door_->forget(last_);
    executor->run();
  }

  AnswerPtr send(std::shared_ptr<const Request> request) {
    auto answer = post(std::move(request));
    executor->run();
    return answer;
  }
  // Sent, and nothing has been done about it yet.
  AnswerPtr post(std::shared_ptr<const Request> request) {
    last_ = request;
    auto answer = std::make_shared<Answer>();
    const std::string method = request->method;
    const std::string path = request->path;
    door_->handle(std::move(request), [answer, method, path](Response response) {
      ASSERT_FALSE(answer->response.has_value()) << "answered twice";
      // Whatever a test provokes, the description of the API must have foreseen it.
      if (const auto* statuses = documented(method, path)) {
        EXPECT_TRUE(statuses->contains(std::to_string(response.status)))
            << method << " " << path << " answers an undocumented " << response.status;
      } else {
        EXPECT_TRUE(response.status >= 400) << method << " " << path << " is not documented";
      }
      std::string text = response.body;
      for (const auto& [name, value] : response.headers) {
        if (name == "Content-Encoding") text = gunzipped(text, 64 << 20).value();
      }
      auto parsed = parse_json(text);
      ASSERT_TRUE(parsed.has_value() && parsed->is_object()) << response.body;
      answer->body = parsed->as_object();
      answer->response = std::move(response);
    });
    return answer;
  }

  void advance(DurationNs duration) { executor->advance(duration); }
  shard::Engine& engine() { return *node_; }
  store::Store& store() { return store_; }

  // What every test does.
  void register_worker(const std::string& id = "w1", const std::string& queue = "q") {
    const auto answer = ask("POST", "/api/worker/register",
                            {{"worker_id", id},
                             {"task_queue", queue},
                             {"runtime", "python"},
                             {"supported_workflow_types", json::array{"greeter"}},
                             {"capabilities", json::array{"query_tasks"}}});
    ASSERT_EQ(answer->status(), 201);
  }
  AnswerPtr start(const std::string& id = "order-1", json::object more = {}) {
    more["workflow_id"] = id;
    more["workflow_type"] = "greeter";
    more["task_queue"] = "q";
    return ask("POST", "/api/workflows", std::move(more));
  }
  AnswerPtr poll(const char* kind = "workflow", const std::string& request_id = "",
                 const std::string& worker = "w1", int64_t seconds = 5) {
    json::object body{{"worker_id", worker}, {"task_queue", "q"}, {"timeout_seconds", seconds}};
    if (!request_id.empty()) body["poll_request_id"] = request_id;
    return ask("POST", std::string("/api/worker/") + kind + "-tasks/poll", std::move(body));
  }
  AnswerPtr answer_task(const Answer& polled, const char* verb, json::object more,
                        const std::string& owner = "w1") {
    more["lease_owner"] = owner;
    more["workflow_task_attempt"] = polled.task().at("workflow_task_attempt");
    return ask("POST",
               "/api/worker/workflow-tasks/" + text_of(polled.task(), "task_id") + "/" + verb,
               std::move(more));
  }
  AnswerPtr complete(const Answer& polled, json::array commands) {
    return answer_task(polled, "complete", {{"commands", std::move(commands)}});
  }
  // Takes the waiting workflow task and completes it.
  void turn(json::array commands) {
    const auto polled = poll();
    ASSERT_TRUE(polled->is_there() && polled->has_task());
    const auto done = complete(*polled, std::move(commands));
    ASSERT_EQ(done->status(), 200) << done->response->body;
  }
  AnswerPtr answer_activity(const Answer& polled, const char* verb, json::object more) {
    more["lease_owner"] = "w1";
    more["activity_attempt_id"] = polled.task().at("activity_attempt_id");
    return ask("POST",
               "/api/worker/activity-tasks/" + text_of(polled.task(), "task_id") + "/" + verb,
               std::move(more));
  }
  json::array history(const std::string& id, const std::string& run) {
    return ask("GET", "/api/workflows/" + id + "/runs/" + run + "/history?page_size=1000")
        ->body.at("events")
        .as_array();
  }
  std::vector<std::string> event_types(const std::string& id, const std::string& run) {
    std::vector<std::string> types;
    for (const auto& event : history(id, run)) {
      types.push_back(text_of(event.as_object(), "event_type"));
    }
    return types;
  }

  ManualClock clock;
  std::unique_ptr<ManualExecutor> executor = std::make_unique<ManualExecutor>(&clock);

 private:
  void open() {
    commits_ = std::make_unique<InstantCommitLog>(&store_, executor.get());
    shard::Node::Parts parts;
    parts.store = &store_;
    parts.commits = commits_.get();
    parts.clock = &clock;
    parts.codec = &codec_;
    parts.durable_codec = &codec_;
    parts.executors = {executor.get()};
    shard::NodeOptions options;
    options.shards = 4;
    options.policies = policies_;
    node_ = std::make_unique<shard::Node>(options, parts, Random(7));
    EXPECT_TRUE(node_->open().ok());
    workers_ = std::make_unique<shard::WorkerRows>(&store_, commits_.get());
    runs_ = std::make_unique<shard::RunList>(&store_, commits_.get(), options.shards);
    schedules_ = std::make_unique<shard::ScheduleList>(&store_, commits_.get(), options.shards);
    door_ = std::make_unique<Door>(
        options_, Door::Parts{node_.get(), node_.get(), workers_.get(), runs_.get(), node_.get(),
                              schedules_.get(), executor.get(), [] { return true; }});
    executor->run();
  }

  const Options options_;
  const std::shared_ptr<const admission::Policies> policies_;
  DurableCodec codec_;
  store::MemoryStore store_;
  std::unique_ptr<InstantCommitLog> commits_;
  std::unique_ptr<shard::Node> node_;
  std::unique_ptr<shard::WorkerRows> workers_;
  std::unique_ptr<shard::RunList> runs_;
  std::unique_ptr<shard::ScheduleList> schedules_;
  std::unique_ptr<Door> door_;
  std::shared_ptr<const Request> last_;
};

inline Options open_door() {
  Options options;
  options.auth_driver = "none";
  return options;
}

inline json::object payload(const json::value& value) {
  return {{"codec", "avro"}, {"blob", *to_blob(value)}};
}

}  // namespace fairlead::durable::testing
