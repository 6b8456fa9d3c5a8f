#include "base/sha256.h"

#include "gtest/gtest.h"

namespace fairlead {
namespace {

// RFC 4231, and FIPS 180-4's lengths around the ends of a block.
TEST(Sha256, SignsAsTheStandardsDo) {
  EXPECT_EQ(hmac_sha256_hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256_hex(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac_sha256_hex("", ""),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Sha256, EveryLengthOfALastBlock) {
  const auto first = [](size_t size) {
    const auto digest = sha256(std::string(size, 'a'));
    return uint32_t{digest[0]} << 24 | uint32_t{digest[1]} << 16 | uint32_t{digest[2]} << 8 |
           digest[3];
  };
  EXPECT_EQ(first(0), 0xe3b0c442u);
  EXPECT_EQ(first(55), 0x9f4390f8u);
  EXPECT_EQ(first(56), 0xb35439a4u);
  EXPECT_EQ(first(63), 0x7d3e74a0u);
  EXPECT_EQ(first(64), 0xffe054feu);
  EXPECT_EQ(first(65), 0x635361c4u);
}

}  // namespace
}  // namespace fairlead
