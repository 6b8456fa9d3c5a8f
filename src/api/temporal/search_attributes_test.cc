#include "api/temporal/search_attributes.h"

#include "api/temporal/proto_testing.h"
#include "gtest/gtest.h"

namespace fairlead::api {
namespace {

using temporal::api::common::v1::Payload;
using temporal::api::common::v1::SearchAttributes;

SearchAttributes attribute(const std::string& name, const std::string& json) {
  SearchAttributes attributes;
  Payload& payload = (*attributes.mutable_indexed_fields())[name];
  (*payload.mutable_metadata())["encoding"] = "json/plain";
  payload.set_data(json);
  return attributes;
}

std::string refusal(SearchAttributes attributes) {
  return std::string(check_search_attributes(attributes, "default").message());
}

TEST(SearchAttributes, ValuesMustFitTheirType) {
  EXPECT_EQ(refusal(attribute("BatcherUser", R"("ann")")), "");
  EXPECT_EQ(refusal(attribute("BatcherUser", R"(["ann"])")),
            "invalid value for search attribute BatcherUser of type Keyword");
  EXPECT_EQ(refusal(attribute("BatcherUser", R"("ann)")),
            "invalid value for search attribute BatcherUser of type Keyword");
  EXPECT_EQ(refusal(attribute("TemporalChangeVersion", R"(["a-1","b-2"])")), "");
  // A single value is a list of one.
  EXPECT_EQ(refusal(attribute("TemporalChangeVersion", R"("a-1")")), "");
  EXPECT_EQ(refusal(attribute("TemporalChangeVersion", "[1]")),
            "invalid value for search attribute TemporalChangeVersion of type KeywordList");
  EXPECT_EQ(refusal(attribute("TemporalExternalPayloadCount", "12")), "");
  EXPECT_EQ(refusal(attribute("TemporalExternalPayloadCount", "1.5")),
            "invalid value for search attribute TemporalExternalPayloadCount of type Int");
  EXPECT_EQ(refusal(attribute("TemporalSchedulePaused", "true")), "");
  EXPECT_EQ(refusal(attribute("TemporalScheduledStartTime", R"("2026-01-02T03:04:05Z")")), "");
  EXPECT_EQ(refusal(attribute("TemporalScheduledStartTime", R"("2026-01-02")")),
            "invalid value for search attribute TemporalScheduledStartTime of type Datetime");
}

TEST(SearchAttributes, NamesMustBeKnownAndSettable) {
  EXPECT_EQ(refusal(attribute("Colour", R"("red")")),
            "Namespace default has no mapping defined for search attribute Colour");
  EXPECT_EQ(refusal(attribute("WorkflowId", R"("w")")),
            "WorkflowId attribute can't be set in SearchAttributes");
}

TEST(SearchAttributes, SizesAreLimited) {
  EXPECT_EQ(refusal(attribute("BatcherUser", "\"" + std::string(2047, 'x') + "\"")),
            "search attribute BatcherUser value size 2049 exceeds size limit 2048");
  SearchAttributes many;
  for (int i = 0; i < 101; ++i) (*many.mutable_indexed_fields())["A" + std::to_string(i)];
  EXPECT_EQ(refusal(many), "number of search attributes 101 exceeds limit 100");
}

// Clients that read attributes back decode them by this mark.
TEST(SearchAttributes, TheTypeIsWrittenIntoThePayload) {
  auto attributes = attribute("BuildIds", R"(["one"])");
  ASSERT_TRUE(check_search_attributes(attributes, "default").ok());
  EXPECT_EQ(attributes.indexed_fields().at("BuildIds").metadata().at("type"), "KeywordList");
}

TEST(SearchAttributes, NullAndNothingRemoveAKey) {
  EXPECT_TRUE(removes_key(Payload()));
  EXPECT_TRUE(removes_key(attribute("A", "null").indexed_fields().at("A")));
  EXPECT_TRUE(removes_key(attribute("A", "[]").indexed_fields().at("A")));
  Payload null;
  (*null.mutable_metadata())["encoding"] = "binary/null";
  EXPECT_TRUE(removes_key(null));
  EXPECT_FALSE(removes_key(attribute("A", "0").indexed_fields().at("A")));
  // An empty blob is a value, and so is one in an encoding of the user's own.
  Payload blob;
  (*blob.mutable_metadata())["encoding"] = "binary/plain";
  EXPECT_FALSE(removes_key(blob));
}

}  // namespace
}  // namespace fairlead::api
