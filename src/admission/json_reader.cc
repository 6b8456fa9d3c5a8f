#include "admission/json_reader.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::admission {

namespace {

// What we read is three deep; this only keeps nonsense from exhausting the stack.
constexpr int kDepthMax = 32;

void append_utf8(uint32_t code, std::string* out) {
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  absl::StatusOr<JsonValue> read() {
    JsonValue value;
    if (!read_value(&value, 0)) return error_;
    skip_blanks();
    if (at_ < text_.size()) {
      fail("the text should end here");
      return error_;
    }
    return value;
  }

 private:
  bool fail(std::string_view what) { return fail_at(at_, what); }
  bool fail_at(size_t at, std::string_view what) {
    error_ = absl::InvalidArgumentError(absl::StrCat(place_in(text_, at), ": ", std::string(what)));
    return false;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() &&
           (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) {
      ++at_;
    }
  }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool read_value(JsonValue* value, int depth) {
    skip_blanks();
    value->at = at_;
    if (depth > kDepthMax) return fail("too deep");
    if (at_ >= text_.size()) return fail("a value is missing");
    switch (peek()) {
      case '{':
        return read_object(value, depth);
      case '[':
        return read_array(value, depth);
      case '"':
        value->kind = JsonValue::Kind::kString;
        return read_string(&value->text);
      default:
        return read_word(value);
    }
  }

  bool read_object(JsonValue* value, int depth) {
    value->kind = JsonValue::Kind::kObject;
    ++at_;
    skip_blanks();
    if (take('}')) return true;
    while (true) {
      skip_blanks();
      JsonValue::Member member;
      member.at = at_;
      if (peek() != '"') return fail("a name in quotes is missing");
      if (!read_string(&member.name)) return false;
      const bool is_known =
          std::any_of(value->members.begin(), value->members.end(),
                      [&](const auto& other) { return other.name == member.name; });
      if (is_known) return fail_at(member.at, absl::StrCat("\"", member.name, "\" is here twice"));
      skip_blanks();
      if (!take(':')) return fail("a colon is missing");
      if (!read_value(&member.value, depth + 1)) return false;
      value->members.push_back(std::move(member));
      skip_blanks();
      if (take('}')) return true;
      if (!take(',')) return fail("a comma or a closing brace is missing");
    }
  }

  bool read_array(JsonValue* value, int depth) {
    value->kind = JsonValue::Kind::kArray;
    ++at_;
    skip_blanks();
    if (take(']')) return true;
    while (true) {
      value->elements.emplace_back();
      if (!read_value(&value->elements.back(), depth + 1)) return false;
      skip_blanks();
      if (take(']')) return true;
      if (!take(',')) return fail("a comma or a closing bracket is missing");
    }
  }

  bool read_string(std::string* out) {
    const size_t begin = at_++;
    while (at_ < text_.size()) {
      const char byte = text_[at_];
      if (byte == '"') {
        ++at_;
        return true;
      }
      if (static_cast<uint8_t>(byte) < 0x20) return fail("a control character in a string");
      if (byte == '\\') {
        if (!read_escape(out)) return false;
      } else {
        out->push_back(byte);
        ++at_;
      }
    }
    return fail_at(begin, "a string without an end");
  }

  bool read_escape(std::string* out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t begin = at_++;
    const char name = peek();
    if (const size_t i = kNames.find(name); at_ < text_.size() && i != std::string_view::npos) {
      out->push_back(kMeanings[i]);
      ++at_;
      return true;
    }
    uint32_t code = 0;
    if (!take('u') || !read_hex(&code)) return fail_at(begin, "an unknown escape");
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (!take('\\') || !take('u') || !read_hex(&low) || low < 0xdc00 || low >= 0xe000) {
        return fail_at(begin, "half of a surrogate pair");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return fail_at(begin, "half of a surrogate pair");
    }
    append_utf8(code, out);
    return true;
  }

  bool read_hex(uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i) {
      const char digit = peek();
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) return false;
      const int value = absl::ascii_isdigit(static_cast<unsigned char>(digit))
                            ? digit - '0'
                            : absl::ascii_tolower(static_cast<unsigned char>(digit)) - 'a' + 10;
      *code = *code << 4 | static_cast<uint32_t>(value);
      ++at_;
    }
    return true;
  }

  // true, false, null or a number.
  bool read_word(JsonValue* value) {
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[end])) ||
                                  text_[end] == '+' || text_[end] == '-' || text_[end] == '.')) {
      ++end;
    }
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "true" || word == "false") {
      value->kind = JsonValue::Kind::kBoolean;
      value->number = word == "true" ? 1 : 0;
    } else if (is_number(word)) {
      value->kind = JsonValue::Kind::kNumber;
      if (!absl::SimpleAtod(std::string(word), &value->number)) return fail("not a number");
    } else if (word != "null") {
      return fail(word.empty() ? "not a value"
                               : absl::StrCat(std::string(word), " is not a value of JSON"));
    }
    at_ = end;
    return true;
  }

  // -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
  static bool is_number(std::string_view word) {
    size_t at = 0;
    const auto digits = [&] {
      const size_t begin = at;
      while (at < word.size() && absl::ascii_isdigit(static_cast<unsigned char>(word[at]))) ++at;
      return at - begin;
    };
    if (at < word.size() && word[at] == '-') ++at;
    const size_t first = at;
    const size_t whole = digits();
    if (whole == 0 || (whole > 1 && word[first] == '0')) return false;
    if (at < word.size() && word[at] == '.') {
      ++at;
      if (digits() == 0) return false;
    }
    if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
      ++at;
      if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
      if (digits() == 0) return false;
    }
    return at == word.size();
  }

  const std::string_view text_;
  size_t at_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<JsonValue> read_json(std::string_view text) { return JsonReader(text).read(); }

std::string place_in(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n');
  const size_t column = before.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1);
  return absl::StrCat(lines + 1, ":", column + 1);
}

}  // namespace fairlead::admission
