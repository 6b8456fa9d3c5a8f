#pragma once

#include <string>
#include <string_view>

namespace fairlead::durable {

// Whether a text may stand in JSON: names reach events, which must stay readable.
bool is_utf8(std::string_view text);
// The text, or a word in its place if it is none.
std::string printable(std::string_view text);

}  // namespace fairlead::durable
