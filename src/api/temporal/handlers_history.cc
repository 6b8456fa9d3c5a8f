#include <algorithm>

#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/random.h"
#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using namespace temporal::api::workflowservice::v1;
using temporal::api::enums::v1::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;

constexpr int kBatchesMax = 256;

// What both directions of reading share. The run is fixed by the first page: a token names it, and
// a workflow id that has moved on to another run meanwhile does not matter.
template <typename Request>
absl::StatusOr<shard::HistoryRequest> read_request(const Service& service, const Request& request,
                                                   int64_t first_event) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_execution(request.has_execution() ? &request.execution() : nullptr,
                         service.options.limits.id_bytes));
  shard::HistoryRequest read;
  read.run = {number_of(ns), request.execution().workflow_id(), request.execution().run_id()};
  read.from_event = first_event;
  if (!request.next_page_token().empty()) {
    const auto token = decode_history_token(request.next_page_token());
    if (!token.ok() || token->next_event < 0 || uuid_to_bytes(token->run_id).empty()) {
      return invalid_argument("Invalid NextPageToken.");
    }
    if (!read.run.run_id.empty() && read.run.run_id != token->run_id) {
      return invalid_argument("RunId in the request does not match the NextPageToken.");
    }
    read.run.run_id = token->run_id;
    read.from_event = token->next_event;
  }
  const int batches = request.maximum_page_size();
  read.max_batches = batches <= 0 || batches > kBatchesMax ? kBatchesMax : batches;
  return read;
}

// GetWorkflowExecutionHistoryResponse and its reverse have the same fields. The events are bytes
// already, so the answer is spliced and not built.
std::string encode_page(const shard::HistoryPage& page, bool has_more) {
  std::string body;
  wire::Writer writer(&body);
  writer.bytes(1, page.history);
  if (has_more) {
    writer.bytes(3, encode_history_token({page.run_id, page.next_event, page.is_open}));
  }
  return body;
}

absl::Status get_history(Service& service, GetWorkflowExecutionHistoryRequest& request,
                         const CallPtr& call) {
  FL_TRY_ASSIGN(auto read, read_request(service, request, 1));
  const bool waits = request.wait_new_event();
  const bool close_only =
      request.history_event_filter_type() == HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
  read.wait_new_event = waits;
  read.close_event_only = close_only;
  if (waits) read.wait_until = service.wait_until(*call);
  service.engine.read_history(
      std::move(read),
      answer<shard::HistoryPage>(call, [waits, close_only](const shard::HistoryPage& page) {
        // A reader that waits has a reason to come back as long as the run is open.
        const bool may_grow = waits && page.is_open;
        return encode_page(page, close_only ? may_grow : !page.at_end || may_grow);
      }));
  return absl::OkStatus();
}

absl::Status get_history_reverse(Service& service,
                                 GetWorkflowExecutionHistoryReverseRequest& request,
                                 const CallPtr& call) {
  FL_TRY_ASSIGN(auto read, read_request(service, request, 0));
  service.engine.read_history_reverse(
      std::move(read), answer<shard::HistoryPage>(call, [](const shard::HistoryPage& page) {
        return encode_page(page, !page.at_end);
      }));
  return absl::OkStatus();
}

}  // namespace

void add_history_handlers(Registrar& registrar) {
  registrar.serve(get_history);
  registrar.serve(get_history_reverse);
}

}  // namespace fairlead::api
