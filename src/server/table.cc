#include "server/table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/assert.h"

namespace fairlead::server {

namespace {

constexpr const char* kGap = "  ";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Characters, not bytes. Good enough for what people name their tenants.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // The second set of control characters is two bytes in UTF-8.
    const bool is_second_set =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_second_set) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(text[++i]));
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

Table::Table(std::vector<std::string> titles) {
  for (auto& title : titles) {
    is_right_.push_back(title.starts_with('>'));
    if (is_right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  FL_ASSERT(cells.size() == is_right_.size(), "a row has as many cells as there are titles");
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(is_right_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width(row[i]), ' ');
      if (i > 0) line += kGap;
      line += is_right_[i] ? space + row[i] : row[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace fairlead::server
