#include "api/temporal/refusals.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/wire.h"
#include "google/protobuf/any.pb.h"
#include "temporal/api/enums/v1/failed_cause.pb.h"
#include "temporal/api/errordetails/v1/message.pb.h"

namespace fairlead::api {

namespace {

using temporal::api::errordetails::v1::ResourceExhaustedFailure;
namespace enums = temporal::api::enums::v1;

// The number of `details` in google.rpc.Status, which is not among the API's own protos.
constexpr uint32_t kDetails = 3;

// What the answer tells its caller. Nothing said, or something else: unspecified.
ResourceExhaustedFailure failure_of(const RpcStatus& status) {
  ResourceExhaustedFailure failure;
  wire::Reader reader(status.details);
  while (reader.next()) {
    google::protobuf::Any detail;
    if (reader.field() != kDetails) continue;
    const auto bytes = reader.bytes();
    if (!detail.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) continue;
    if (detail.Is<ResourceExhaustedFailure>()) detail.UnpackTo(&failure);
  }
  return failure;
}

// "RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT" is written RpsLimit.
std::string word_of(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return "Unspecified";
  std::string word;
  bool begins = true;
  for (const char c : name.substr(prefix.size())) {
    const auto letter = static_cast<unsigned char>(c);
    if (c != '_') word += begins ? absl::ascii_toupper(letter) : absl::ascii_tolower(letter);
    begins = c == '_';
  }
  return word;
}

}  // namespace

void RefusalCounts::count(std::string_view method, const RpcStatus& status) {
  if (status.code != static_cast<int>(absl::StatusCode::kResourceExhausted)) return;
  const auto failure = failure_of(status);
  const std::string operation(method.substr(method.rfind('/') + 1));
  const std::lock_guard lock(mutex_);
  ++counts_[{operation, static_cast<int>(failure.cause()), static_cast<int>(failure.scope())}];
}

std::vector<RefusalCounts::Entry> RefusalCounts::list() const {
  std::vector<Entry> entries;
  const std::lock_guard lock(mutex_);
  for (const auto& [at, count] : counts_) {
    const auto& [operation, cause, scope] = at;
    entries.push_back(
        {operation,
         word_of(
             enums::ResourceExhaustedCause_Name(static_cast<enums::ResourceExhaustedCause>(cause)),
             "RESOURCE_EXHAUSTED_CAUSE_"),
         word_of(
             enums::ResourceExhaustedScope_Name(static_cast<enums::ResourceExhaustedScope>(scope)),
             "RESOURCE_EXHAUSTED_SCOPE_"),
         count});
  }
  return entries;
}

}  // namespace fairlead::api
