#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/temporal/handler.h"
#include "api/temporal/queue_handlers.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "google/protobuf/util/time_util.h"
#include "model/bytes.h"
#include "queue/limits.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// The `temporal` CLI still asks in the mode that the API has since deprecated.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

// What a task queue looks like from outside.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::util::TimeUtil;
using shard::QueueView;
using namespace temporal::api::enums::v1;
using namespace temporal::api::taskqueue::v1;
using namespace temporal::api::workflowservice::v1;

// What the reference says of a poller that asked for no limit.
constexpr double kUnlimitedPerSecond = 100'000;
constexpr int kBuildIdsMax = 100;
constexpr int kReachabilityBuildIdsMax = 5;
// The year 1, which is how the reference's language writes "never".
constexpr int64_t kNeverSeconds = -62'135'596'800;

// One call about the queues of a name: they live in different places and are asked in turn.
struct Question {
  CallPtr call;
  NamespaceNum ns;
  DescribeTaskQueueRequest request;
  std::vector<TaskQueueType> types;
  std::vector<QueueView> views;  // of `types`, in their order
};

bool is_enhanced(const DescribeTaskQueueRequest& request) {
  return request.api_mode() == DESCRIBE_TASK_QUEUE_MODE_ENHANCED;
}

absl::Status check_describe(const DescribeTaskQueueRequest& request, int64_t id_max) {
  FL_TRY(check_task_queue(request.has_task_queue() ? &request.task_queue() : nullptr, id_max));
  if (request.task_queue().kind() == TASK_QUEUE_KIND_STICKY) {
    if (is_enhanced(request)) {
      return invalid_argument(
          "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or "
          "a normal queue.");
    }
    if (request.report_stats()) {
      return invalid_argument("DescribeTaskQueue stats are only supported for the root partition");
    }
    return errors::unimplemented("sticky queues are not described by this server");
  }
  const int build_ids = request.versions().build_ids_size();
  if (request.report_task_reachability() && build_ids > kReachabilityBuildIdsMax) {
    return invalid_argument(absl::StrCat(
        "Too many build ids queried at once with ReportTaskReachability==true, limit: ",
        kReachabilityBuildIdsMax));
  }
  if (build_ids > kBuildIdsMax) {
    return invalid_argument(
        absl::StrCat("too many build ids: got ", build_ids, ", maximum ", kBuildIdsMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TaskQueueType>> read_types(const DescribeTaskQueueRequest& request) {
  std::vector<int> asked = {request.task_queue_type()};
  if (is_enhanced(request)) {
    asked.assign(request.task_queue_types().begin(), request.task_queue_types().end());
    if (asked.empty()) asked = {TASK_QUEUE_TYPE_WORKFLOW, TASK_QUEUE_TYPE_ACTIVITY};
  }
  std::vector<TaskQueueType> types;
  for (const int number : asked) {
    if (!TaskQueueType_IsValid(number)) {
      return invalid_argument(
          absl::StrCat("task queue type ", number, " is unknown; there are 1, 2 and 3"));
    }
    auto type = static_cast<TaskQueueType>(number);
    if (type == TASK_QUEUE_TYPE_UNSPECIFIED) type = TASK_QUEUE_TYPE_WORKFLOW;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

void write_pollers(const QueueView& view, google::protobuf::RepeatedPtrField<PollerInfo>& pollers) {
  for (const auto& poller : view.pollers) {
    auto& info = *pollers.Add();
    (void)info.ParseFromString(poller.about);  // our own bytes
    info.set_identity(poller.identity);
    *info.mutable_last_access_time() = TimeUtil::NanosecondsToTimestamp(poller.last_access_ns);
    info.set_rate_per_second(poller.max_tasks_per_second.value_or(kUnlimitedPerSecond));
  }
}

queue::LevelView sum(const QueueView& view) {
  queue::LevelView total;
  for (const auto& level : view.levels) {
    if (level.waiting > 0) {
      total.oldest_ns =
          total.waiting > 0 ? std::min(total.oldest_ns, level.oldest_ns) : level.oldest_ns;
    }
    total.waiting += level.waiting;
    total.added_per_second += level.added_per_second;
    total.dispatched_per_second += level.dispatched_per_second;
  }
  return total;
}

void write_stats(const queue::LevelView& level, bool is_limiting, TimeNs now,
                 TaskQueueStats& stats) {
  const DurationNs age =
      level.waiting > 0 ? std::max<DurationNs>(now - level.oldest_ns, 0) : DurationNs{0};
  stats.set_approximate_backlog_count(level.waiting);
  *stats.mutable_approximate_backlog_age() = TimeUtil::NanosecondsToDuration(age);
  stats.set_tasks_add_rate(static_cast<float>(level.added_per_second));
  stats.set_tasks_dispatch_rate(static_cast<float>(level.dispatched_per_second));
  stats.set_rate_limiting_active(is_limiting);
}

// The default level is always shown, so that readers need not tell "unused" from "not reported".
void write_all_stats(const QueueView& view, TimeNs now, DescribeTaskQueueResponse& response) {
  write_stats(sum(view), view.is_limiting, now, *response.mutable_stats());
  for (size_t level = 1; level <= view.levels.size(); ++level) {
    const auto& its = view.levels[level - 1];
    if (level != view.default_level && its.waiting == 0 && its.added_per_second == 0 &&
        its.dispatched_per_second == 0) {
      continue;
    }
    write_stats(its, view.is_limiting, now,
                (*response.mutable_stats_by_priority_key())[static_cast<int32_t>(level)]);
  }
}

RateLimitSource source_of(const QueueView& view) {
  switch (view.limit_source) {
    case QueueView::LimitSource::kApi:
      return RATE_LIMIT_SOURCE_API;
    case QueueView::LimitSource::kWorker:
      return RATE_LIMIT_SOURCE_WORKER;
    case QueueView::LimitSource::kSystem:
      return RATE_LIMIT_SOURCE_SYSTEM;
  }
  return RATE_LIMIT_SOURCE_UNSPECIFIED;
}

void write_default(const Question& question, TimeNs now, DescribeTaskQueueResponse& response) {
  const auto& request = question.request;
  const QueueView& view = question.views.front();
  write_pollers(view, *response.mutable_pollers());
  if (request.report_stats()) write_all_stats(view, now, response);
  // Nobody serves versions yet, so everything goes to workers without one.
  response.mutable_versioning_info()->set_current_version("__unversioned__");
  response.mutable_versioning_info()->mutable_update_time()->set_seconds(kNeverSeconds);
  auto& limit = *response.mutable_effective_rate_limit();
  limit.set_requests_per_second(static_cast<float>(view.limit_per_second));
  limit.set_rate_limit_source(source_of(view));
  if (request.include_task_queue_status()) {
    // Our tasks are not numbered in blocks; readers of old look into the block without asking.
    auto& status = *response.mutable_task_queue_status();
    status.set_backlog_count_hint(sum(view).waiting);
    status.set_rate_per_second(view.limit_per_second);
    status.mutable_task_id_block();
  }
}

void write_enhanced(const Question& question, TimeNs now, DescribeTaskQueueResponse& response) {
  const auto& request = question.request;
  auto& versions = *response.mutable_versions_info();
  // Types are there for every version; only workers without a version have anything to show.
  const auto write_version = [&](const std::string& build_id) {
    auto& info = versions[build_id];
    const bool is_unversioned = build_id.empty();
    if (request.report_task_reachability()) {
      info.set_task_reachability(is_unversioned ? BUILD_ID_TASK_REACHABILITY_REACHABLE
                                                : BUILD_ID_TASK_REACHABILITY_UNREACHABLE);
    }
    for (size_t i = 0; i < question.types.size(); ++i) {
      const QueueView& view = question.views[i];
      auto& type = (*info.mutable_types_info())[question.types[i]];
      if (request.report_stats()) {
        write_stats(is_unversioned ? sum(view) : queue::LevelView{},
                    is_unversioned && view.is_limiting, now, *type.mutable_stats());
      }
      if (request.report_pollers() && is_unversioned) write_pollers(view, *type.mutable_pollers());
    }
  };
  const auto& asked = request.versions();
  for (const std::string& build_id : asked.build_ids()) write_version(build_id);
  if (asked.unversioned() || asked.all_active() || asked.build_ids().empty()) write_version("");
}

std::string encode(const Question& question, TimeNs now) {
  DescribeTaskQueueResponse response;
  if (is_enhanced(question.request)) {
    write_enhanced(question, now, response);
  } else {
    write_default(question, now, response);
  }
  // There is room for one: that of the first queue that has any.
  const auto owner = std::find_if(question.views.begin(), question.views.end(),
                                  [](const QueueView& view) { return view.has_rules; });
  if (question.request.report_config() && owner != question.views.end()) {
    write_queue_config(owner->rules, *response.mutable_config());
  }
  return model::stable_bytes(response);
}

void ask_next(shard::Engine& engine, const std::shared_ptr<Question>& question) {
  auto& views = question->views;
  // Nobody serves Nexus yet: its queues are empty.
  while (views.size() < question->types.size() &&
         question->types[views.size()] == TASK_QUEUE_TYPE_NEXUS) {
    views.emplace_back().limit_per_second = queue::kSystemLimit;
  }
  if (views.size() == question->types.size()) {
    return succeed(*question->call, encode(*question, engine.now()));
  }
  const bool is_workflow = question->types[views.size()] == TASK_QUEUE_TYPE_WORKFLOW;
  shard::QueueRef queue = {.ns = question->ns,
                           .kind = is_workflow ? model::WORKFLOW_TASK : model::ACTIVITY_TASK,
                           .name = question->request.task_queue().name()};
  engine.describe_queue(std::move(queue), [&engine, question](absl::StatusOr<QueueView> view) {
    if (!view.ok()) return fail(*question->call, view.status());
    question->views.push_back(*std::move(view));
    ask_next(engine, question);
  });
}

absl::Status describe(Service& service, DescribeTaskQueueRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_describe(request, service.options.limits.id_bytes));
  auto question = std::make_shared<Question>();
  FL_TRY_ASSIGN(question->types, read_types(request));
  question->call = call;
  question->ns = number_of(ns);
  question->request = request;
  ask_next(service.engine, question);
  return absl::OkStatus();
}

// A queue has one owner and no parts: that is why its order is exact.
absl::Status list_partitions(Service& service, ListTaskQueuePartitionsRequest& request,
                             const CallPtr& call) {
  FL_TRY(service.find_namespace(request.namespace_()).status());
  FL_TRY(check_task_queue(request.has_task_queue() ? &request.task_queue() : nullptr,
                          service.options.limits.id_bytes));
  ListTaskQueuePartitionsResponse response;
  response.add_workflow_task_queue_partitions()->set_key(request.task_queue().name());
  response.add_activity_task_queue_partitions()->set_key(request.task_queue().name());
  succeed(*call, model::stable_bytes(response));
  return absl::OkStatus();
}

}  // namespace

void add_queue_handlers(Registrar& registrar) {
  registrar.serve(describe);
  registrar.serve(list_partitions);
}

}  // namespace fairlead::api
