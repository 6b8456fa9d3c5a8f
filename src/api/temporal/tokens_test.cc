#include <gtest/gtest.h>

#include "api/temporal/answers.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/wire.h"

namespace fairlead::api {
namespace {

shard::TaskToken sample() {
  return {.ns = NamespaceNum(3),
          .workflow_id = "w",
          .run_id = "r",
          .scheduled_id = 5,
          .started_id = 6,
          .attempt = 2,
          .started_ns = 1'700'000'000'000'000'000,
          .activity_id = "a"};
}

std::string random_bytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (auto& c : bytes) c = static_cast<char>(random.next());
  return bytes;
}

// What a token of ours would look like with other fields inside.
std::string sealed(std::string bytes) {
  const auto hash = static_cast<uint32_t>(stable_hash(bytes) >> 32);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(hash >> (8 * i)));
  return bytes;
}

void expect_bad_task_token(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "Error deserializing task token.");
}

TEST(TaskToken, ComesBackWhole) {
  const auto token = decode_token(encode_token(sample()));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->ns, NamespaceNum(3));
  EXPECT_EQ(token->workflow_id, "w");
  EXPECT_EQ(token->run_id, "r");
  EXPECT_EQ(token->scheduled_id, 5);
  EXPECT_EQ(token->started_id, 6);
  EXPECT_EQ(token->attempt, 2);
  EXPECT_EQ(token->started_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(token->activity_id, "a");
}

// People keep tokens in databases and complete activities with them after an upgrade.
TEST(TaskToken, ItsBytesDoNotChange) {
  const std::string golden(
      "\x01t"  // version, kind
      "\x08\x03\x12\x01w\x1a\x01r\x20\x05\x28\x06\x30\x02"
      "\x38\x80\x80\xa8\xb1\xe3\x9f\xe7\xcb\x17"  // started_ns
      "\x42\x01"
      "a"
      "\xf1\x90\x9d\x60");  // checksum
  EXPECT_EQ(encode_token(sample()), golden);
}

TEST(TaskToken, AFieldFromANewerServerIsPassedOver) {
  auto bytes = encode_token(sample());
  bytes.resize(bytes.size() - 4);
  wire::Writer writer(&bytes);
  writer.string(99, "from the future");
  const auto token = decode_token(sealed(bytes));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->activity_id, "a");
}

TEST(TaskToken, CutOrMangledOnesAreRefused) {
  const auto whole = encode_token(sample());
  for (size_t size = 0; size < whole.size(); ++size) {
    expect_bad_task_token(decode_token(std::string_view(whole).substr(0, size)).status());
  }
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    auto flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    expect_bad_task_token(decode_token(flipped).status());
  }
}

TEST(TaskToken, NoiseIsRefused) {
  Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    auto noise = random_bytes(random, random.below(60));
    expect_bad_task_token(decode_token(noise).status());
    expect_bad_task_token(decode_query_token(noise).status());
    const auto history = decode_history_token(noise);
    EXPECT_EQ(history.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(history.status().message(), "Invalid NextPageToken.");
  }
}

// The checksum hides the parser from plain noise, so noise with the right checksum is tried too. It
// may even happen to be a token; all that counts is that it is read without harm.
TEST(TaskToken, NoiseWithTheRightChecksumDoesNoHarm) {
  Random random(8);
  for (int round = 0; round < 20'000; ++round) {
    const auto noise = random_bytes(random, random.below(60));
    const auto token = decode_token(sealed("\x01t" + noise));
    if (token.ok()) {
      EXPECT_FALSE(token->workflow_id.empty());
    } else {
      expect_bad_task_token(token.status());
    }
    (void)decode_query_token(sealed("\x01q" + noise));
    (void)decode_history_token(sealed("\x01h" + noise));
    (void)decode_change_token(sealed("\x01c" + noise));
  }
}

TEST(TaskToken, NumbersThatDoNotFitAreRefused) {
  for (const uint32_t field : {1u, 4u, 5u, 6u, 7u}) {
    std::string bytes = "\x01t";
    wire::Writer writer(&bytes);
    writer.string(2, "w");
    writer.varint(field, UINT64_MAX);
    expect_bad_task_token(decode_token(sealed(bytes)).status());
  }
}

TEST(Tokens, OneKindIsNotTakenForAnother) {
  const auto task = encode_token(sample());
  const auto query = encode_query_token("n", "q");
  const auto history = encode_history_token({.run_id = "r", .next_event = 2});
  for (const auto& wrong : {query, history}) expect_bad_task_token(decode_token(wrong).status());
  for (const auto& wrong : {task, history}) {
    expect_bad_task_token(decode_query_token(wrong).status());
  }
  for (const auto& wrong : {task, query}) EXPECT_FALSE(decode_history_token(wrong).ok());
  for (const auto& wrong : {task, query, history}) EXPECT_FALSE(decode_change_token(wrong).ok());
}

// The task of an activity without a workflow; the other door's runs are none of this one's.
TEST(TaskToken, SaysThatAnActivityStandsAlone) {
  auto token = sample();
  token.flavour = model::STANDALONE;
  const auto read = decode_token(encode_token(token));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->flavour, model::STANDALONE);
  EXPECT_EQ(decode_token(encode_token(sample()))->flavour, model::TEMPORAL);
  token.flavour = model::DURABLE;
  expect_bad_task_token(decode_token(encode_token(token)).status());
}

TEST(ChangeToken, ComesBackWhole) {
  const auto token = decode_change_token(encode_change_token({"r", 9}));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->run_id, "r");
  EXPECT_EQ(token->transitions, 9);
  EXPECT_EQ(decode_change_token("nonsense").status().message(), "invalid long poll token");
}

TEST(QueryToken, ComesBackWhole) {
  const auto token = decode_query_token(encode_query_token("n", "q"));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->namespace_id, "n");
  EXPECT_EQ(token->query_id, "q");
  EXPECT_TRUE(decode_query_token(encode_query_token("", "q")).ok());
  EXPECT_FALSE(decode_query_token(encode_query_token("n", "")).ok());
}

TEST(HistoryToken, ComesBackWhole) {
  const auto token =
      decode_history_token(encode_history_token({.run_id = "r", .next_event = 9, .is_open = true}));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->run_id, "r");
  EXPECT_EQ(token->next_event, 9);
  EXPECT_TRUE(token->is_open);
  EXPECT_FALSE(decode_history_token(encode_history_token({.run_id = ""})).ok());
}

}  // namespace
}  // namespace fairlead::api
