#include "api/temporal/search_attributes.h"

#include <array>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/temporal/convert.h"
#include "api/temporal/try.h"
#include "base/error.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/time_util.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Value;
using temporal::api::common::v1::Payload;
using namespace temporal::api::enums::v1;

constexpr auto kText = INDEXED_VALUE_TYPE_TEXT;
constexpr auto kKeyword = INDEXED_VALUE_TYPE_KEYWORD;
constexpr auto kInt = INDEXED_VALUE_TYPE_INT;
constexpr auto kBool = INDEXED_VALUE_TYPE_BOOL;
constexpr auto kDatetime = INDEXED_VALUE_TYPE_DATETIME;
constexpr auto kKeywordList = INDEXED_VALUE_TYPE_KEYWORD_LIST;

constexpr size_t kKeysMax = 100;
constexpr size_t kValueBytesMax = 2 << 10;
constexpr size_t kTotalBytesMax = 40 << 10;

constexpr std::array kKnown = {
    KnownAttribute{"WorkflowId", kKeyword, false},
    KnownAttribute{"RunId", kKeyword, false},
    KnownAttribute{"WorkflowType", kKeyword, false},
    KnownAttribute{"StartTime", kDatetime, false},
    KnownAttribute{"ExecutionTime", kDatetime, false},
    KnownAttribute{"CloseTime", kDatetime, false},
    KnownAttribute{"ExecutionStatus", kKeyword, false},
    KnownAttribute{"TaskQueue", kKeyword, false},
    KnownAttribute{"HistoryLength", kInt, false},
    KnownAttribute{"HistorySizeBytes", kInt, false},
    KnownAttribute{"ExecutionDuration", kInt, false},
    KnownAttribute{"StateTransitionCount", kInt, false},
    KnownAttribute{"ParentWorkflowId", kKeyword, false},
    KnownAttribute{"ParentRunId", kKeyword, false},
    KnownAttribute{"RootWorkflowId", kKeyword, false},
    KnownAttribute{"RootRunId", kKeyword, false},
    KnownAttribute{"TemporalChangeVersion", kKeywordList, true},
    KnownAttribute{"BinaryChecksums", kKeywordList, true},
    KnownAttribute{"BuildIds", kKeywordList, true},
    KnownAttribute{"BatcherNamespace", kKeyword, true},
    KnownAttribute{"BatcherUser", kKeyword, true},
    KnownAttribute{"TemporalScheduledStartTime", kDatetime, true},
    KnownAttribute{"TemporalScheduledById", kKeyword, true},
    KnownAttribute{"TemporalSchedulePaused", kBool, true},
    KnownAttribute{"TemporalNamespaceDivision", kKeyword, true},
    KnownAttribute{"TemporalPauseInfo", kKeywordList, true},
    KnownAttribute{"TemporalReportedProblems", kKeywordList, true},
    KnownAttribute{"TemporalWorkerDeploymentVersion", kKeyword, true},
    KnownAttribute{"TemporalWorkerDeployment", kKeyword, true},
    KnownAttribute{"TemporalWorkflowVersioningBehavior", kKeyword, true},
    KnownAttribute{"TemporalUsedWorkerDeploymentVersions", kKeywordList, true},
    KnownAttribute{"TemporalExternalPayloadCount", kInt, true},
    KnownAttribute{"TemporalExternalPayloadSizeBytes", kInt, true},
};

const KnownAttribute* find_attribute(const std::string& name) {
  for (const auto& known : kKnown) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

std::string type_name(IndexedValueType type) {
  return short_name(IndexedValueType_Name(type), "INDEXED_VALUE_TYPE_");
}

std::string_view encoding_of(const Payload& payload) {
  const auto found = payload.metadata().find("encoding");
  return found == payload.metadata().end() ? std::string_view() : found->second;
}

bool is_string(const Value& value) { return value.kind_case() == Value::kStringValue; }

bool fits(const Value& value, IndexedValueType type) {
  switch (type) {
    case kText:
    case kKeyword:
      return is_string(value);
    case kInt:
      return value.kind_case() == Value::kNumberValue &&
             std::trunc(value.number_value()) == value.number_value();
    case kBool:
      return value.kind_case() == Value::kBoolValue;
    case kDatetime: {
      google::protobuf::Timestamp time;
      return is_string(value) &&
             google::protobuf::util::TimeUtil::FromString(value.string_value(), &time);
    }
    case kKeywordList: {
      if (value.kind_case() != Value::kListValue) return is_string(value);
      for (const auto& element : value.list_value().values()) {
        if (!is_string(element)) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

bool is_valid(const Payload& payload, IndexedValueType type) {
  if (removes_key(payload)) return true;
  if (encoding_of(payload) != "json/plain") return false;
  Value value;
  return google::protobuf::util::JsonStringToMessage(payload.data(), &value).ok() &&
         fits(value, type);
}

absl::Status check_attribute(const std::string& name, Payload& payload,
                             const std::string& namespace_name) {
  const KnownAttribute* known = find_attribute(name);
  if (known == nullptr) {
    return invalid_argument(absl::StrCat("Namespace ", namespace_name,
                                         " has no mapping defined for search attribute ", name));
  }
  if (!known->is_settable) {
    return invalid_argument(absl::StrCat(name, " attribute can't be set in SearchAttributes"));
  }
  // Before the value is looked into: parsing is for values of a reasonable size.
  if (payload.data().size() > kValueBytesMax) {
    return invalid_argument(absl::StrCat("search attribute ", name, " value size ",
                                         payload.data().size(), " exceeds size limit ",
                                         kValueBytesMax));
  }
  if (!is_valid(payload, known->type)) {
    return invalid_argument(absl::StrCat("invalid value for search attribute ", name, " of type ",
                                         type_name(known->type)));
  }
  (*payload.mutable_metadata())["type"] = type_name(known->type);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const KnownAttribute> known_attributes() { return kKnown; }

bool removes_key(const Payload& payload) {
  if (payload.data().empty()) {
    const auto encoding = encoding_of(payload);
    return encoding.empty() || encoding == "binary/null" || encoding == "json/plain";
  }
  return encoding_of(payload) == "json/plain" &&
         (payload.data() == "null" || payload.data() == "[]");
}

absl::Status check_search_attributes(temporal::api::common::v1::SearchAttributes& attributes,
                                     const std::string& namespace_name) {
  const size_t keys = attributes.indexed_fields().size();
  if (keys > kKeysMax) {
    return invalid_argument(
        absl::StrCat("number of search attributes ", keys, " exceeds limit ", kKeysMax));
  }
  size_t total = 0;
  for (auto& [name, payload] : *attributes.mutable_indexed_fields()) {
    FL_TRY(check_attribute(name, payload, namespace_name));
    total += name.size() + payload.data().size();
  }
  if (total > kTotalBytesMax) {
    return invalid_argument(absl::StrCat("total size of search attributes ", total,
                                         " exceeds size limit ", kTotalBytesMax));
  }
  return absl::OkStatus();
}

}  // namespace fairlead::api
