#include "server/files.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

using testing::HasSubstr;

TEST(Files, AFileIsReadWhole) {
  const std::string name = testing::TempDir() + "files_test.toml";
  for (const std::string& text : {std::string("a = 1\n\nb"), std::string()}) {
    std::ofstream(name) << text;
    const auto read = read_file(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
  }
}

TEST(Files, WhatCannotBeReadIsNamedWithTheReason) {
  const std::string folder = testing::TempDir();
  EXPECT_THAT(read_file(folder).status().message(),
              HasSubstr(folder + ": cannot be read: Is a directory"));
  EXPECT_THAT(read_file(folder + "nothing.toml").status().message(),
              HasSubstr("nothing.toml: cannot be read: No such file"));
}

}  // namespace
}  // namespace fairlead::server
