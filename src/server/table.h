#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::server {

// Text for a terminal: names that clients chose may hold anything, also what would move the cursor.
std::string printable(std::string_view text);

// Rows in columns that are as wide as their widest cell.
class Table {
 public:
  // A title that begins with '>' makes its column flush right, as numbers like it.
  explicit Table(std::vector<std::string> titles);

  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the titles first
  std::vector<bool> is_right_;
};

}  // namespace fairlead::server
