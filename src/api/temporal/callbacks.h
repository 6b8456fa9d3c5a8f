#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "history/callbacks.h"
#include "history/limits.h"
#include "temporal/api/common/v1/message.pb.h"

// Completion callbacks as clients write them: where they may go, and what an answer means.
namespace fairlead::api {

// Where callbacks may be sent. Nowhere, unless an operator says so: whoever may start a workflow
// could otherwise make the server talk to anything it can reach.
class CallbackAddresses {
 public:
  // "*.example.com:443, http://localhost:*": host and port, a star is anything. An address that
  // begins with http:// may also be called without TLS.
  static absl::StatusOr<CallbackAddresses> parse(std::string_view text);

  absl::Status check(const std::string& url) const;

 private:
  struct Rule {
    std::string pattern;
    bool insecure = false;
  };
  std::vector<Rule> rules_;
};

// The callbacks of a request in the bytes that are kept of them.
absl::StatusOr<std::vector<std::string>> read_callbacks(
    const google::protobuf::RepeatedPtrField<temporal::api::common::v1::Callback>& callbacks,
    const CallbackAddresses& allowed, const history::Limits& limits);

// What the answer to a callback means.
struct CallbackAnswer {
  int status = 0;
  std::string reason;     // of the status line
  std::string retryable;  // the header Nexus-Request-Retryable
};
history::CallbackOutcome judge(const CallbackAnswer& answer);

}  // namespace fairlead::api
