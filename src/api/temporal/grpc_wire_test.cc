#include "api/temporal/grpc_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace fairlead::api {
namespace {

using testing::HasSubstr;

std::string framed(std::string_view message, char flag = 0) {
  const MessagePrefix prefix(message.size());
  std::string out(prefix.bytes, kMessagePrefixBytes);
  out[0] = flag;
  return out.append(message);
}

std::string packed(const std::string& plain) {
  std::string out(compressBound(plain.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(plain.data()), plain.size()),
            Z_OK);
  out.resize(size);
  return out;
}

TEST(GrpcTimeout, EveryUnitIsKnown) {
  EXPECT_EQ(parse_grpc_timeout("2H"), 2 * kHour);
  EXPECT_EQ(parse_grpc_timeout("3M"), 3 * kMinute);
  EXPECT_EQ(parse_grpc_timeout("70S"), 70 * kSecond);
  EXPECT_EQ(parse_grpc_timeout("250m"), 250 * kMillisecond);
  EXPECT_EQ(parse_grpc_timeout("5u"), 5'000);
  EXPECT_EQ(parse_grpc_timeout("7n"), 7);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), kNever);
}

TEST(GrpcTimeout, OtherTextsAreNone) {
  for (const char* text : {"", "S", "5", "5s", "-5S", "+5S", " 5S", "5 S", "1.5S", "123456789S"}) {
    EXPECT_EQ(parse_grpc_timeout(text), std::nullopt) << text;
  }
}

TEST(GrpcMessageText, PassesThroughAHeader) {
  EXPECT_EQ(encode_grpc_message("no such thing"), "no such thing");
  EXPECT_EQ(encode_grpc_message("50% of Käse\n"), "50%25 of K%C3%A4se%0A");
}

TEST(BinaryHeader, HasNoPadding) {
  EXPECT_EQ(encode_binary_header(std::string("\x08\x05\0x", 4)), "CAUAeA");
  EXPECT_EQ(encode_binary_header(""), "");
}

TEST(MessageReader, FindsMessagesHoweverTheyArrive) {
  const std::string wire = framed("one") + framed("") + framed("three");
  for (size_t piece = 1; piece <= wire.size(); ++piece) {
    MessageReader reader(100);
    std::optional<RpcStatus> error;
    std::vector<std::string> seen;
    for (size_t at = 0; at < wire.size(); at += piece) {
      reader.append(std::string_view(wire).substr(at, piece));
      while (const auto message = reader.next(&error)) seen.emplace_back(message->view());
    }
    EXPECT_FALSE(error.has_value());
    EXPECT_FALSE(reader.has_rest());
    EXPECT_THAT(seen, testing::ElementsAre("one", "", "three")) << piece;
  }
}

TEST(MessageReader, RefusesWhatIsTooLargeBeforeItArrives) {
  MessageReader reader(10);
  std::optional<RpcStatus> error;
  reader.append(std::string_view(framed("12345678901")).substr(0, kMessagePrefixBytes));
  EXPECT_FALSE(reader.next(&error).has_value());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, kResourceExhausted);
  EXPECT_EQ(error->message, "grpc: received message larger than max (11 vs. 10)");
}

TEST(MessageReader, Decompresses) {
  MessageReader reader(100'000);
  ASSERT_TRUE(reader.set_encoding("deflate"));
  std::optional<RpcStatus> error;
  const std::string plain(100'000, 'x');
  reader.append(framed(packed(plain), 1) + framed("plain"));
  auto message = reader.next(&error);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->view(), plain);
  message = reader.next(&error);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->view(), "plain");
}

// A kilobyte can pretend to be a gigabyte.
TEST(MessageReader, StopsDecompressingAtTheLimit) {
  MessageReader reader(1'000);
  ASSERT_TRUE(reader.set_encoding("gzip"));
  std::optional<RpcStatus> error;
  reader.append(framed(packed(std::string(500'000, 'x')), 1));
  EXPECT_FALSE(reader.next(&error).has_value());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, kResourceExhausted);
}

TEST(MessageReader, BrokenCompressionIsAnError) {
  for (const std::string& bytes : {std::string("nonsense"), packed("hello").substr(0, 6)}) {
    MessageReader reader(1'000);
    ASSERT_TRUE(reader.set_encoding("gzip"));
    std::optional<RpcStatus> error;
    reader.append(framed(bytes, 1));
    EXPECT_FALSE(reader.next(&error).has_value());
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, kInternal);
  }
}

TEST(MessageReader, FlagsThatWereNotAnnouncedAreErrors) {
  for (const char flag : {char{1}, char{2}, static_cast<char>(0xff)}) {
    MessageReader reader(1'000);
    std::optional<RpcStatus> error;
    reader.append(framed("x", flag));
    EXPECT_FALSE(reader.next(&error).has_value());
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->message, HasSubstr("compression flag"));
  }
  EXPECT_FALSE(MessageReader(10).set_encoding("zstd"));
}

}  // namespace
}  // namespace fairlead::api
