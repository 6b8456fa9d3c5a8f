#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "api/temporal/answers.h"
#include "api/temporal/proto_testing.h"
#include "base/error.h"
#include "temporal/api/errordetails/v1/message.pb.h"
#include "temporal/api/failure/v1/message.pb.h"

namespace fairlead::api {
namespace {

using namespace temporal::api::errordetails::v1;
// google.rpc.Status under another name: the same three fields.
using Status = MultiOperationExecutionFailure::OperationStatus;

// Reads the detail as SDKs do: by its type, and from a status that repeats code and message.
template <typename Detail>
void expect_detail(const absl::Status& status, int code, const std::string& text) {
  const auto rpc = to_rpc_status(status);
  EXPECT_EQ(rpc.code, code);
  EXPECT_EQ(rpc.message, std::string(status.message()));
  const auto parsed = parse<Status>(rpc.details);
  EXPECT_EQ(parsed.code(), code);
  EXPECT_EQ(parsed.message(), rpc.message);
  ASSERT_EQ(parsed.details_size(), 1);
  EXPECT_EQ(parsed.details(0).type_url(),
            "type.googleapis.com/" + Detail::descriptor()->full_name());
  Detail detail;
  ASSERT_TRUE(parsed.details(0).UnpackTo(&detail));
  expect_same(detail, from_text<Detail>(text));
}

TEST(RpcError, EachKindHasTheDetailThatSdksLookFor) {
  expect_detail<NotFoundFailure>(errors::workflow_not_found("w"), 5, "");
  expect_detail<NamespaceNotFoundFailure>(errors::namespace_not_found("n"), 5, "namespace: 'n'");
  expect_detail<NamespaceInvalidStateFailure>(errors::namespace_invalid_state("n", "no"), 9,
                                              "namespace: 'n' state: NAMESPACE_STATE_DEPRECATED "
                                              "allowed_states: NAMESPACE_STATE_REGISTERED");
  expect_detail<NamespaceAlreadyExistsFailure>(errors::namespace_already_exists("n"), 6, "");
  expect_detail<WorkflowExecutionAlreadyStartedFailure>(
      errors::workflow_already_started("Workflow execution is already running", "q", "r", "f"), 6,
      "start_request_id: 'q' run_id: 'r' first_execution_run_id: 'f'");
  expect_detail<QueryFailedFailure>(
      errors::query_failed("no such query",
                           bytes_of<temporal::api::failure::v1::Failure>("message: 'why'")),
      3, "failure { message: 'why' }");
  expect_detail<QueryFailedFailure>(errors::query_failed("old worker", ""), 3, "");
  expect_detail<WorkflowNotReadyFailure>(errors::workflow_not_ready("not yet"), 9, "");
}

TEST(RpcError, ExhaustedResourcesSayWhichAndWhose) {
  expect_detail<ResourceExhaustedFailure>(
      errors::concurrent_limit("too many polls"), 8,
      "cause: RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT scope: RESOURCE_EXHAUSTED_SCOPE_NAMESPACE");
  expect_detail<ResourceExhaustedFailure>(
      errors::busy_workflow("closing"), 8,
      "cause: RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW scope: RESOURCE_EXHAUSTED_SCOPE_NAMESPACE");
  expect_detail<ResourceExhaustedFailure>(
      errors::system_overloaded(), 8,
      "cause: RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED scope: RESOURCE_EXHAUSTED_SCOPE_SYSTEM");
}

TEST(RpcError, PlainErrorsAreCodeAndMessage) {
  const auto rpc = to_rpc_status(errors::invalid_argument("Namespace is empty."));
  EXPECT_EQ(rpc.code, 3);
  EXPECT_EQ(rpc.message, "Namespace is empty.");
  EXPECT_EQ(rpc.details, "");
  EXPECT_EQ(to_rpc_status(errors::unavailable("stopping")).code, 14);
  EXPECT_EQ(to_rpc_status(errors::unimplemented("no")).code, 12);
}

TEST(RpcError, SuccessIsSilent) {
  const auto rpc = to_rpc_status(absl::OkStatus());
  EXPECT_EQ(rpc.code, 0);
  EXPECT_EQ(rpc.message, "");
  EXPECT_EQ(rpc.details, "");
}

// Messages travel in a header, and headers have limits. A character cut in half would make the
// whole status unreadable to a client that checks its UTF-8.
TEST(RpcError, LongMessagesAreCutBetweenCharacters) {
  EXPECT_EQ(to_rpc_status(errors::unavailable(std::string(5000, 'x'))).message.size(), 4000u);
  EXPECT_EQ(to_rpc_status(errors::unavailable(std::string(4000, 'x'))).message.size(), 4000u);
  const std::string wide = std::string(3999, 'x') + "\xc3\xbc and more";
  EXPECT_EQ(to_rpc_status(errors::not_found(wide)).message, std::string(3999, 'x'));
  const auto details = to_rpc_status(errors::not_found(wide)).details;
  EXPECT_EQ(parse<Status>(details).message(), std::string(3999, 'x'));
}

// A client has no use for our inner life, but its user should be able to tell us which line of the
// log to look at.
TEST(RpcError, InternalErrorsAreMaskedTheSameWayEachTime) {
  const auto rpc = to_rpc_status(errors::internal("row 17 is upside down"));
  EXPECT_EQ(rpc.code, 13);
  EXPECT_FALSE(absl::StrContains(rpc.message, "row 17"));
  ASSERT_TRUE(absl::StartsWith(rpc.message, "something went wrong, please retry ("));
  EXPECT_EQ(rpc.message.size(), sizeof("something went wrong, please retry (12345678)") - 1);
  EXPECT_EQ(rpc.message, to_rpc_status(errors::internal("row 17 is upside down")).message);
  EXPECT_NE(rpc.message, to_rpc_status(errors::internal("row 18 is upside down")).message);
}

}  // namespace
}  // namespace fairlead::api
