#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

// What somebody may have meant.
namespace fairlead {

// How many letters have to be put in, taken out or changed to make one word of another.
size_t edits(std::string_view a, std::string_view b);

// A third of the letters may be wrong; beyond that a suggestion misleads more than it helps.
bool is_near(size_t distance, std::string_view word);

// The nearest of the words; empty if none is near.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace fairlead
