#include "api/durable/canonical.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::durable {

namespace {

// The code point that begins at `at`, which is moved past it. The text is UTF-8: it was parsed.
uint32_t next_code_point(json::string_view text, size_t* at) {
  const auto lead = static_cast<unsigned char>(text[(*at)++]);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  uint32_t code = more == 0 ? lead : lead & (0x3f >> more);
  for (int i = 0; i < more && *at < text.size(); ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[(*at)++]) & 0x3f);
  }
  return code;
}

void put_string(json::string_view text, std::string* out) {
  out->push_back('"');
  for (size_t at = 0; at < text.size();) {
    const uint32_t code = next_code_point(text, &at);
    switch (code) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      case '\t':
        out->append("\\t");
        break;
      case '\b':
        out->append("\\b");
        break;
      case '\f':
        out->append("\\f");
        break;
      default:
        if (code >= 0x10000) {
          absl::StrAppendFormat(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                                0xdc00 + ((code - 0x10000) & 0x3ff));
        } else if (code >= 0x80 || code < 0x20) {
          absl::StrAppendFormat(out, "\\u%04x", code);
        } else {
          out->push_back(static_cast<char>(code));
        }
    }
  }
  out->push_back('"');
}

// The fewest digits that give the number back; plain up to 10^16, always with a fraction.
void put_double(double number, std::string* out) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(number),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t mark = text.find('e');
  std::string digits(text.substr(0, mark));
  std::erase(digits, '.');
  int exponent = 0;
  const std::string tail(text.substr(mark + 1));
  if (!absl::SimpleAtoi(tail, &exponent)) exponent = 0;
  if (std::signbit(number)) out->push_back('-');
  if (exponent < -4 || exponent > 16) {
    absl::StrAppend(out, digits.substr(0, 1), ".", digits.size() > 1 ? digits.substr(1) : "0");
    absl::StrAppendFormat(out, "e%+d", exponent);
    return;
  }
  if (exponent < 0) {
    absl::StrAppend(out, "0.", std::string(static_cast<size_t>(-exponent - 1), '0'), digits);
    return;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  absl::StrAppend(out, digits.substr(0, whole), ".",
                  digits.size() > whole ? digits.substr(whole) : "0");
}

void put_value(const json::value& value, std::string* out) {
  if (value.is_object()) {
    std::vector<const json::key_value_pair*> members;
    for (const auto& each : value.as_object()) members.push_back(&each);
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return a->key() < b->key(); });
    out->push_back('{');
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out->push_back(',');
      put_string(members[i]->key(), out);
      out->push_back(':');
      put_value(members[i]->value(), out);
    }
    out->push_back('}');
  } else if (value.is_array()) {
    out->push_back('[');
    for (size_t i = 0; i < value.as_array().size(); ++i) {
      if (i > 0) out->push_back(',');
      put_value(value.as_array()[i], out);
    }
    out->push_back(']');
  } else if (value.is_string()) {
    put_string(value.as_string(), out);
  } else if (value.is_double()) {
    put_double(value.as_double(), out);
  } else {
    out->append(json::serialize(value));
  }
}

}  // namespace

std::string canonical_json(const json::value& value) {
  std::string text;
  put_value(value, &text);
  return text;
}

}  // namespace fairlead::durable
