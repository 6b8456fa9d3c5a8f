#include "server/table.h"

#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"KEY", ">WAITING", "STATE"});
  table.add({"acme", "7", "paused"});
  table.add({"müller", "12345678", ""});
  EXPECT_EQ(table.text(),
            "KEY      WAITING  STATE\n"
            "acme           7  paused\n"
            "müller  12345678\n");
}

TEST(Table, WithoutRowsThereAreStillTitles) { EXPECT_EQ(Table({"A", ">B"}).text(), "A  B\n"); }

// Clients choose the names of keys. One that holds an escape sequence must not repaint the screen
// of whoever looks for it.
TEST(Table, NothingMovesTheCursor) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\rd\x7f"), "a\\x1b[2Jb\\nc\\x0dd\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\x9b1m");
  EXPECT_EQ(printable("Zürich ° 東京"), "Zürich ° 東京");
  EXPECT_EQ(printable("\xc2"), "\xc2");
  Table table({"KEY"});
  table.add({"a\x1b"});
  EXPECT_EQ(table.text(), "KEY\na\\x1b\n");
}

}  // namespace
}  // namespace fairlead::server
