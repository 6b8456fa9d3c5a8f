#include "api/durable/avro.h"

#include "gtest/gtest.h"

namespace fairlead::durable {
namespace {

json::value parsed(std::string_view text) { return *parse_json(text); }

struct Golden {
  const char* text;
  const char* blob;
};

// Bytes that the Python SDK wrote. They are on the wire and in stores: DO NOT CHANGE.
constexpr Golden kGolden[] = {
    {"null", "wwHioz3/VYAiNwA="},
    {"true", "wwHioz3/VYAiNwIB"},
    {"false", "wwHioz3/VYAiNwIA"},
    {"0", "wwHioz3/VYAiNwQA"},
    {"1", "wwHioz3/VYAiNwQC"},
    {"-1", "wwHioz3/VYAiNwQB"},
    {"42", "wwHioz3/VYAiNwRU"},
    {"9223372036854775807", "wwHioz3/VYAiNwT+//////////8B"},
    {"-9223372036854775808", "wwHioz3/VYAiNwT///////////8B"},
    {"1.5", "wwHioz3/VYAiNwYAAAAAAAD4Pw=="},
    {"\"\"", "wwHioz3/VYAiNwoA"},
    {"\"hi\"", "wwHioz3/VYAiNwoEaGk="},
    {"\"é\"", "wwHioz3/VYAiNwoEw6k="},
    {"[]", "wwHioz3/VYAiNwwA"},
    {"[1,\"a\",null]", "wwHioz3/VYAiNwwGBAIKAmEAAA=="},
    {"{}", "wwHioz3/VYAiNw4A"},
    {"{\"a\":1}", "wwHioz3/VYAiNw4CAmEEAgA="},
    {"{\"b\":[true],\"a\":{}}", "wwHioz3/VYAiNw4EAmIMAgIBAAJhDgAA"},
};

TEST(Avro, WritesAndReadsTheBytesOfTheSdk) {
  for (const auto& golden : kGolden) {
    EXPECT_EQ(to_blob(parsed(golden.text)).value(), golden.blob) << golden.text;
    const auto bytes = value_of_blob(golden.blob);
    ASSERT_TRUE(bytes.ok()) << golden.text << ": " << bytes.status();
    EXPECT_EQ(from_value(*bytes).value(), parsed(golden.text)) << golden.text;
  }
}

TEST(Avro, ReadsBlocksAsOtherWritersMakeThem) {
  // Two blocks, the second one with its size in bytes: [1, 2].
  const std::string bytes("\x0C\x02\x04\x02\x01\x04\x04\x04\x00", 9);
  EXPECT_EQ(from_value(bytes).value(), parsed("[1,2]"));
}

TEST(Avro, ShowsBytesAsBase64) {
  EXPECT_EQ(from_value(*value_of_blob("wwHioz3/VYAiNwgEAP8=")).value(), parsed("\"AP8=\""));
}

TEST(Avro, RefusesWhatIsNoValue) {
  struct Case {
    const char* blob;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"not base64!", "not base64"},
      {"wwE=", "does not begin"},
      {"AAHioz3/VYAiNwA=", "does not begin"},
      {"wwHioz3/VYAiOAA=", "unsupported_payload_schema"},
      {"wwHioz3/VYAiNw==", "too early"},
      {"wwHioz3/VYAiNwoEaA==", "too early"},
      {"wwHioz3/VYAiNwAA", "bytes follow"},
      {"wwHioz3/VYAiNxA=", "no such branch"},
      {"wwHioz3/VYAiNwYAAAAAAADwfw==", "non_finite"},
      {"wwHioz3/VYAiNwT///////////8D", "integer_overflow"},
  };
  for (const auto& refused : kCases) {
    const auto bytes = value_of_blob(refused.blob);
    ASSERT_FALSE(bytes.ok()) << refused.blob;
    EXPECT_NE(bytes.status().message().find(refused.message), std::string::npos)
        << refused.blob << ": " << bytes.status();
  }
}

TEST(Avro, RefusesAValueThatIsNestedWithoutEnd) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes.append("\x0C\x02");
  EXPECT_FALSE(from_value(bytes).ok());
}

TEST(Avro, SplitsAMapAndPutsItTogetherInTheOrderOfItsKeys) {
  const auto bytes = to_value(parsed(R"({"b":[true],"a":{"x":1}})")).value();
  const auto entries = split_map(bytes).value();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(from_value(entries.at("b")).value(), parsed("[true]"));
  EXPECT_EQ(from_value(map_value(entries)).value(), parsed(R"({"a":{"x":1},"b":[true]})"));
  EXPECT_EQ(map_value({}), std::string("\x0E\x00", 2));
  EXPECT_FALSE(split_map("\x02\x01").ok());
}

}  // namespace
}  // namespace fairlead::durable
