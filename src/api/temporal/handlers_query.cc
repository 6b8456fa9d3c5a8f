#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/query_answer.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

absl::StatusOr<shard::QueryReject> read_reject(QueryRejectCondition condition) {
  switch (condition) {
    case QUERY_REJECT_CONDITION_UNSPECIFIED:
    case QUERY_REJECT_CONDITION_NONE:
      return shard::QueryReject::kNone;
    case QUERY_REJECT_CONDITION_NOT_OPEN:
      return shard::QueryReject::kNotOpen;
    case QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY:
      return shard::QueryReject::kNotCompletedCleanly;
    default:
      return invalid_argument("Unknown QueryRejectCondition.");
  }
}

// QueryWorkflowResponse; the result is the worker's own bytes.
std::string encode_queried(const shard::QueryResult& result) {
  std::string body;
  wire::Writer writer(&body);
  if (result.rejected == model::STATUS_UNSPECIFIED) {
    writer.bytes(1, result.result);
  } else {
    writer.message(2, [&](wire::Writer& rejected) { rejected.varint(1, result.rejected); });
  }
  return body;
}

absl::Status query_workflow(Service& service, QueryWorkflowRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const auto& limits = service.options.limits;
  FL_TRY(
      check_execution(request.has_execution() ? &request.execution() : nullptr, limits.id_bytes));
  if (!request.has_query()) return invalid_argument("WorkflowQuery is not set on request.");
  if (request.query().query_type().empty()) {
    return invalid_argument("QueryType is not set on request.");
  }
  FL_TRY(check_length(request.query().query_type(), "QueryType", limits.id_bytes));
  FL_TRY(check_blob(static_cast<int64_t>(request.query().query_args().ByteSizeLong()),
                    limits.blob_bytes));

  shard::QueryRequest query;
  FL_TRY_ASSIGN(query.reject, read_reject(request.query_reject_condition()));
  query.run = {number_of(ns), request.execution().workflow_id(), request.execution().run_id()};
  query.query = request.query().SerializeAsString();
  query.deadline = call->deadline() == kNever
                       ? add_saturated(service.engine.now(), service.options.query_wait)
                       : call->deadline();
  service.engine.query_workflow(std::move(query), answer<shard::QueryResult>(call, encode_queried));
  return absl::OkStatus();
}

absl::Status respond_query(Service& service, RespondQueryTaskCompletedRequest& request,
                           const CallPtr& call) {
  if (request.task_token().empty()) return invalid_argument("Task token not set on request.");
  FL_TRY_ASSIGN(auto token, decode_query_token(request.task_token()));
  if (request.namespace_().empty()) {
    FL_TRY(service.engine.namespaces().find_by_id(token.namespace_id).status());
  } else {
    FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
    if (ns->id() != token.namespace_id) {
      return invalid_argument("Operation requested with a token from a different namespace.");
    }
  }
  auto query_answer = read_query_answer(
      request.completed_type(), request.query_result(), request.error_message(),
      request.has_failure() ? &request.failure() : nullptr, service.options.limits.blob_bytes);
  service.engine.answer_query(std::move(token.query_id), std::move(query_answer),
                              answer_done(call));
  return absl::OkStatus();
}

}  // namespace

shard::QueryAnswer read_query_answer(QueryResultType type,
                                     const temporal::api::common::v1::Payloads& result,
                                     const std::string& error_message,
                                     const temporal::api::failure::v1::Failure* failure,
                                     int64_t blob_bytes_max) {
  shard::QueryAnswer query_answer;
  const auto bytes = static_cast<int64_t>(result.ByteSizeLong());
  if (bytes > blob_bytes_max) {
    query_answer.error_message = "Blob data size exceeds limit.";
    return query_answer;
  }
  query_answer.answered = type == QUERY_RESULT_TYPE_ANSWERED;
  if (query_answer.answered) {
    query_answer.result = result.SerializeAsString();
    return query_answer;
  }
  query_answer.error_message =
      std::string(cut_text(error_message, static_cast<size_t>(blob_bytes_max)));
  // A failure beyond the limit is left out: the message above still tells what happened.
  if (failure != nullptr && static_cast<int64_t>(failure->ByteSizeLong()) <= blob_bytes_max) {
    query_answer.failure = failure->SerializeAsString();
  }
  return query_answer;
}

void add_query_handlers(Registrar& registrar) {
  registrar.serve(query_workflow);
  registrar.serve(respond_query);
}

}  // namespace fairlead::api
