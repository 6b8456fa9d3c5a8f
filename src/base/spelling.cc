#include "base/spelling.h"

#include <algorithm>

namespace fairlead {

size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

bool is_near(size_t distance, std::string_view word) {
  return distance <= std::max<size_t>(2, word.size() / 3);
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& words) {
  const auto found = std::min_element(
      words.begin(), words.end(), [&](auto a, auto b) { return edits(word, a) < edits(word, b); });
  return found != words.end() && is_near(edits(word, *found), word) ? *found : std::string_view();
}

}  // namespace fairlead
