#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/spelling.h"
#include "base/time.h"
#include "base/wire.h"

namespace fairlead {
namespace {

TEST(Wire, WhatIsWrittenIsReadBack) {
  std::string bytes;
  wire::Writer writer(&bytes);
  writer.varint(1, 300);
  writer.string(2, "hello");
  writer.message(3, [](wire::Writer& inner) { inner.string(1, std::string(1000, 'x')); });
  wire::Reader reader(bytes);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 300u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "hello");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes().size(), 1003u) << "a length of two bytes moves the message up";
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ok());
}

// Bytes that we did not write end the walk; they never lead outside the message.
TEST(Wire, AnyBytesAreWalkedSafely) {
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (uint64_t n = random.below(40); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.next()));
    }
    wire::Reader reader(bytes);
    size_t walked = 0;
    while (reader.next()) walked += reader.raw().size();
    ASSERT_LE(walked, bytes.size());
    if (reader.ok()) ASSERT_EQ(walked, bytes.size());
  }
}

TEST(Wire, ATimeBeforeTheEpochCountsItsNanosForward) {
  std::string bytes;
  wire::Writer(&bytes).timestamp(1, -1);
  wire::Reader outer(bytes);
  ASSERT_TRUE(outer.next());
  wire::Reader time(outer.bytes());
  ASSERT_TRUE(time.next());
  EXPECT_EQ(static_cast<int64_t>(time.number()), -1);
  ASSERT_TRUE(time.next());
  EXPECT_EQ(time.number(), 999'999'999u);
}

TEST(Uuid, TextAndBytesAreTheSameId) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto text = make_uuid(random, 1'700'000'000 * kSecond);
    ASSERT_EQ(uuid_from_bytes(uuid_to_bytes(text)), text);
  }
  EXPECT_EQ(uuid_to_bytes("not a uuid"), "");
  EXPECT_EQ(uuid_to_bytes("0192f0a0-0000-7000-8000-00000000000g"), "");
  EXPECT_EQ(uuid_to_bytes("0192f0a0+0000-7000-8000-000000000000"), "");
}

TEST(Uuid, AnIdMadeLaterSortsLater) {
  Random random(1);
  EXPECT_LT(make_uuid(random, 1000 * kSecond), make_uuid(random, 1001 * kSecond));
}

// Reaches the disk: which shard owns a row depends on it.
TEST(Hash, GoldenValues) {
  EXPECT_EQ(stable_hash(""), 0x8570e254d5cb36d5u);
  EXPECT_EQ(stable_hash("fairlead"), 0x845a5fb68e2e8b72u);
}

TEST(Time, AddingNeverOverflows) {
  EXPECT_EQ(add_saturated(kNever, 1), kNever);
  EXPECT_EQ(add_saturated(kNever - 5, 10), kNever);
  EXPECT_EQ(add_saturated(5, 10), 15);
}

TEST(Error, ADetailTravelsWithItsStatus) {
  const auto status = errors::workflow_already_started("taken", "request", "run", "first");
  const auto detail = error_detail(status);
  EXPECT_EQ(detail.kind, ErrorKind::kWorkflowAlreadyStarted);
  EXPECT_EQ(detail.fields, (std::vector<std::string>{"request", "run", "first"}));
  EXPECT_EQ(error_detail(errors::invalid_argument("x")).kind, ErrorKind::kPlain);
}

TEST(Spelling, FindsTheWordThatWasMeant) {
  EXPECT_EQ(edits("weight", "wieght"), 2u);
  EXPECT_EQ(edits("", "abc"), 3u);
  EXPECT_EQ(nearest("wieght", {"name", "weight", "height_max"}), "weight");
  EXPECT_EQ(nearest("colour", {"name", "weight"}), "") << "a guess would mislead";
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace fairlead
