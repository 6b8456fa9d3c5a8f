#include "api/durable/utf8.h"

#include <cstdint>

namespace fairlead::durable {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size == 0 || lead > 0xF4 || i + size > text.size()) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    // Overlong forms, halves of surrogate pairs, and what is beyond Unicode.
    const auto second = size > 1 ? static_cast<uint8_t>(text[i + 1]) : uint8_t{0x80};
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    i += size;
  }
  return true;
}

std::string printable(std::string_view text) {
  return is_utf8(text) ? std::string(text) : "(not UTF-8)";
}

}  // namespace fairlead::durable
