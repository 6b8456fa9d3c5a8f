#include "store/log_frame.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace fairlead::store {
namespace {

using namespace std::string_literals;

std::string any_text(Random& random) {
  std::string text(random.below(20), '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

WriteBatch any_batch(Random& random) {
  WriteBatch batch;
  for (uint64_t ops = random.below(4); ops > 0; --ops) {
    switch (random.below(3)) {
      case 0:
        batch.put(any_text(random), any_text(random));
        break;
      case 1:
        batch.erase(any_text(random));
        break;
      default:
        batch.erase_range(any_text(random), any_text(random));
    }
  }
  return batch;
}

std::string frame(const WriteBatch& batch) {
  std::string bytes;
  append_frame(batch, &bytes);
  return bytes;
}

TEST(LogFrame, HasItsGoldenBytes) {
  WriteBatch batch;
  batch.put("key", "v");
  batch.erase("k");
  EXPECT_EQ(frame(batch).substr(4),
            "\x00\x00\x00\x17"
            "\x00\x00\x00\x00\x03key\x00\x00\x00\x01v"
            "\x01\x00\x00\x00\x01k\x00\x00\x00\x00"s);
}

TEST(LogFrame, WhatIsTakenIsWhatWasAppended) {
  Random random(1);
  std::string log;
  std::vector<std::string> frames;
  for (int i = 0; i < 200; ++i) {
    const WriteBatch batch = any_batch(random);
    append_frame(batch, &log);
    frames.push_back(frame(batch));
  }
  std::string_view rest = log;
  for (const std::string& expected : frames) {
    const std::optional<WriteBatch> batch = take_frame(&rest);
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(frame(*batch), expected);
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(take_frame(&rest).has_value());
}

// Zeros are what the end of a preallocated file looks like. Many a checksum of nothing is zero.
TEST(LogFrame, ZerosAreNotAFrame) {
  for (size_t size = 0; size < 64; ++size) {
    const std::string zeros(size, '\0');
    std::string_view rest = zeros;
    EXPECT_FALSE(take_frame(&rest).has_value()) << size;
    EXPECT_EQ(rest.size(), size);
  }
}

TEST(LogFrame, ATornFrameIsNotTaken) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = frame(any_batch(random));
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      std::string_view rest = std::string_view(bytes).substr(0, cut);
      EXPECT_FALSE(take_frame(&rest).has_value());
      EXPECT_EQ(rest.size(), cut);
    }
  }
}

TEST(LogFrame, AFrameWithAnyBitFlippedIsNotTaken) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    std::string bytes = frame(any_batch(random));
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      std::string_view rest = bytes;
      EXPECT_FALSE(take_frame(&rest).has_value()) << "bit " << bit;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
  }
}

// Bytes that nobody wrote must never do more than be refused.
TEST(LogFrame, NoiseIsRefusedWithoutHarm) {
  Random random(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string noise(random.below(64), '\0');
    for (char& c : noise) c = static_cast<char>(random.chance(0.5) ? 0 : random.next());
    std::string_view rest = noise;
    EXPECT_FALSE(take_frame(&rest).has_value());
  }
}

}  // namespace
}  // namespace fairlead::store
