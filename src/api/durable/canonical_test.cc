#include "api/durable/canonical.h"

#include "gtest/gtest.h"

namespace fairlead::durable {
namespace {

std::string canonical(std::string_view text) { return canonical_json(*parse_json(text)); }

TEST(Canonical, SortsMembersAtEveryDepth) {
  EXPECT_EQ(canonical(R"({"b": [{"y": null, "x": true}], "a": 1, "B": -2})"),
            R"({"B":-2,"a":1,"b":[{"x":true,"y":null}]})");
}

TEST(Canonical, EscapesAllButAscii) {
  EXPECT_EQ(canonical("\"a/b\\\"\\u0001\\n\xc3\xa9\xf0\x9f\x98\x80\x7f\""),
            "\"a/b\\\"\\u0001\\n\\u00e9\\ud83d\\ude00\x7f\"");
}

TEST(Canonical, WritesFractionsInTheFewestDigits) {
  EXPECT_EQ(canonical("[1.5, 3e0, 0.1, -0.0, 1e16, 1e17, 12.5e-6, 0.0001, 123456789012345680.0]"),
            "[1.5,3.0,0.1,-0.0,10000000000000000.0,1.0e+17,1.25e-5,0.0001,1.2345678901234568e+17]");
}

}  // namespace
}  // namespace fairlead::durable
