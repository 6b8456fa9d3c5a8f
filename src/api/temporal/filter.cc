#include "api/temporal/filter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "api/temporal/try.h"
#include "base/error.h"

namespace fairlead::api {

struct Filter::Node {
  enum class Kind : uint8_t { kAnd, kOr, kNot, kCompare, kIn, kBetween, kStartsWith, kIsNull };
  enum class Sign : uint8_t { kEqual, kLess, kLessOrEqual };

  Kind kind = Kind::kAnd;
  std::vector<Node> parts;  // of and, or, not
  std::string name;
  Sign sign = Sign::kEqual;
  std::vector<AttributeValue> values;

  // Nothing: it cannot be told.
  std::optional<bool> holds(Look look) const;
};

namespace {

using Node = Filter::Node;
using Kind = Node::Kind;
using Sign = Node::Sign;

// Conditions inside conditions; deeper ones are no honest question.
constexpr int kDepthMax = 100;

absl::Status invalid(std::string_view what) {
  return errors::invalid_argument(absl::StrCat("invalid query: ", std::string(what)));
}

struct Token {
  enum class Kind : uint8_t { kEnd, kName, kQuotedName, kText, kNumber, kSign };
  Kind kind = Kind::kEnd;
  std::string text;
};

absl::StatusOr<std::vector<Token>> split(std::string_view text) {
  std::vector<Token> tokens;
  const auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (absl::ascii_isspace(c)) {
      ++at;
    } else if (c == '\'' || c == '"' || c == '`') {
      std::string value;
      for (++at; at < text.size() && text[at] != c; ++at) {
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
        value.push_back(text[at]);
      }
      if (at == text.size()) return invalid(absl::StrCat("a ", std::string(1, c), " has no end"));
      ++at;
      tokens.push_back({c == '`' ? Token::Kind::kQuotedName : Token::Kind::kText, value});
    } else if (absl::ascii_isdigit(c) || ((c == '-' || c == '+') && at + 1 < text.size() &&
                                          absl::ascii_isdigit(text[at + 1]))) {
      const size_t begin = at++;
      while (at < text.size() &&
             (is_word(text[at]) ||
              ((text[at] == '-' || text[at] == '+') && absl::ascii_tolower(text[at - 1]) == 'e'))) {
        ++at;
      }
      tokens.push_back({Token::Kind::kNumber, std::string(text.substr(begin, at - begin))});
    } else if (is_word(c)) {
      const size_t begin = at;
      while (at < text.size() && is_word(text[at])) ++at;
      tokens.push_back({Token::Kind::kName, std::string(text.substr(begin, at - begin))});
    } else {
      const std::string_view two = text.substr(at, 2);
      const bool is_pair = two == "!=" || two == "<>" || two == "<=" || two == ">=";
      const std::string_view sign = text.substr(at, is_pair ? 2 : 1);
      if (!is_pair && std::string_view("=<>(),").find(c) == std::string_view::npos) {
        return invalid(absl::StrCat("'", std::string(1, c), "' means nothing here"));
      }
      tokens.push_back({Token::Kind::kSign, std::string(sign)});
      at += sign.size();
    }
  }
  tokens.push_back({});
  return tokens;
}

Node negate(Node node) {
  Node negated;
  negated.kind = Kind::kNot;
  negated.parts.push_back(std::move(node));
  return negated;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, Filter::Types types)
      : tokens_(std::move(tokens)), types_(types) {}

  absl::StatusOr<Node> parse() {
    FL_TRY_ASSIGN(Node node, any(0));
    if (now().kind != Token::Kind::kEnd) {
      return invalid(absl::StrCat("'", now().text, "' was not expected"));
    }
    return node;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  bool is_word(std::string_view word) const {
    return now().kind == Token::Kind::kName &&
           absl::EqualsIgnoreCase(now().text, std::string(word));
  }
  bool skip_word(std::string_view word) {
    if (!is_word(word)) return false;
    ++at_;
    return true;
  }
  bool skip_sign(std::string_view sign) {
    if (now().kind != Token::Kind::kSign || now().text != sign) return false;
    ++at_;
    return true;
  }
  absl::Status want_sign(std::string_view sign) {
    if (skip_sign(sign)) return absl::OkStatus();
    return invalid(absl::StrCat("'", std::string(sign), "' is missing before '", now().text, "'"));
  }

  absl::StatusOr<Node> joined(Kind kind, std::string_view word, int depth) {
    Node node;
    node.kind = kind;
    do {
      FL_TRY_ASSIGN(Node part, kind == Kind::kOr ? joined(Kind::kAnd, "AND", depth) : one(depth));
      node.parts.push_back(std::move(part));
    } while (skip_word(word));
    if (node.parts.size() > 1) return node;
    return std::move(node.parts.front());
  }
  absl::StatusOr<Node> any(int depth) { return joined(Kind::kOr, "OR", depth); }

  absl::StatusOr<Node> one(int depth) {
    if (depth > kDepthMax) return invalid("too many conditions inside each other");
    if (skip_word("NOT")) {
      FL_TRY_ASSIGN(Node node, one(depth + 1));
      return negate(std::move(node));
    }
    if (skip_sign("(")) {
      FL_TRY_ASSIGN(Node node, any(depth + 1));
      FL_TRY(want_sign(")"));
      return node;
    }
    return condition();
  }

  absl::StatusOr<Node> condition() {
    const Token name = now();
    if (name.kind != Token::Kind::kName && name.kind != Token::Kind::kQuotedName) {
      return invalid(name.kind == Token::Kind::kEnd
                         ? std::string("it ends where an attribute was expected")
                         : absl::StrCat("'", name.text, "' is no attribute"));
    }
    ++at_;
    const AttributeType type = types_(name.text);
    if (type == AttributeType::kNone) {
      return invalid(absl::StrCat("invalid search attribute: ", name.text));
    }
    Node node;
    node.name = name.text;
    if (skip_word("IS")) {
      const bool is_not = skip_word("NOT");
      if (!skip_word("NULL")) return invalid("after IS comes NULL or NOT NULL");
      node.kind = Kind::kIsNull;
      return is_not ? negate(std::move(node)) : node;
    }
    const bool is_not = skip_word("NOT");
    FL_TRY_ASSIGN(bool is_sign_negated, relation(type, is_not, node));
    return is_not || is_sign_negated ? negate(std::move(node)) : node;
  }

  // What is demanded of the attribute. True: the opposite of it is.
  absl::StatusOr<bool> relation(AttributeType type, bool is_not, Node& node) {
    if (skip_word("IN")) {
      node.kind = Kind::kIn;
      FL_TRY(want_sign("("));
      do {
        FL_TRY(add_value(type, node));
      } while (skip_sign(","));
      FL_TRY(want_sign(")"));
      return false;
    }
    if (skip_word("BETWEEN")) {
      node.kind = Kind::kBetween;
      FL_TRY(add_value(type, node));
      if (!skip_word("AND")) return invalid("AND is missing after BETWEEN");
      FL_TRY(add_value(type, node));
      return false;
    }
    if (skip_word("STARTS_WITH")) {
      if (type != AttributeType::kKeyword) {
        return invalid(absl::StrCat("STARTS_WITH wants a keyword, which ", node.name, " is not"));
      }
      node.kind = Kind::kStartsWith;
      FL_TRY(add_value(type, node));
      return false;
    }
    const std::string sign = now().text;
    const bool is_sign =
        now().kind == Token::Kind::kSign && sign != "(" && sign != ")" && sign != ",";
    if (is_not || !is_sign) {
      return invalid(absl::StrCat("'", sign, "' does not compare ", node.name, " to anything"));
    }
    ++at_;
    node.kind = Kind::kCompare;
    const bool is_equality = sign == "=" || sign == "!=" || sign == "<>";
    if (!is_equality && (type == AttributeType::kKeywordList || type == AttributeType::kBool)) {
      return invalid(absl::StrCat(node.name, " has no order for ", sign));
    }
    // a > b is not (a <= b).
    node.sign = is_equality                   ? Sign::kEqual
                : sign == "<" || sign == ">=" ? Sign::kLess
                                              : Sign::kLessOrEqual;
    FL_TRY(add_value(type, node));
    return sign == "!=" || sign == "<>" || sign == ">" || sign == ">=";
  }

  absl::Status add_value(AttributeType type, Node& node) {
    const Token token = now();
    const bool is_bool = is_word("true") || is_word("false");
    if (token.kind != Token::Kind::kText && token.kind != Token::Kind::kNumber && !is_bool) {
      return invalid(token.kind == Token::Kind::kEnd
                         ? absl::StrCat("it ends where a value of ", node.name, " was expected")
                         : absl::StrCat("'", token.text, "' is no value; text wants quotes"));
    }
    auto value = value_of(type, token, is_bool);
    if (!value.has_value()) {
      return invalid(absl::StrCat("'", token.text, "' is no value of ", node.name));
    }
    ++at_;
    node.values.push_back(*std::move(value));
    return absl::OkStatus();
  }

  static std::optional<AttributeValue> value_of(AttributeType type, const Token& token,
                                                bool is_bool) {
    const bool is_text = token.kind == Token::Kind::kText;
    const bool is_number = token.kind == Token::Kind::kNumber;
    int64_t whole = 0;
    double real = 0;
    absl::Time time;
    switch (type) {
      case AttributeType::kKeyword:
      case AttributeType::kKeywordList:
        if (is_text) return token.text;
        break;
      case AttributeType::kInt:
        if (is_number && absl::SimpleAtoi(token.text, &whole)) return whole;
        break;
      case AttributeType::kDouble:
        if (is_number && absl::SimpleAtod(token.text, &real)) return real;
        break;
      case AttributeType::kBool:
        if (is_bool) return absl::EqualsIgnoreCase(token.text, "true");
        break;
      case AttributeType::kTime:
        if (is_number && absl::SimpleAtoi(token.text, &whole)) return whole;
        if (is_text && absl::ParseTime(absl::RFC3339_full, token.text, &time, nullptr)) {
          return absl::ToUnixNanos(time);
        }
        break;
      case AttributeType::kNone:
        break;
    }
    return std::nullopt;
  }

  const std::vector<Token> tokens_;
  const Filter::Types types_;
  size_t at_ = 0;
};

bool is_equal(const AttributeValue& has, const AttributeValue& wanted) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&has)) {
    const auto* one = std::get_if<std::string>(&wanted);
    return one != nullptr && std::find(list->begin(), list->end(), *one) != list->end();
  }
  return has == wanted;
}

}  // namespace

std::optional<bool> Filter::Node::holds(Look look) const {
  if (kind == Kind::kAnd || kind == Kind::kOr) {
    const bool decides = kind == Kind::kOr;  // one such part is enough
    std::optional<bool> all = !decides;
    for (const auto& part : parts) {
      const auto one = part.holds(look);
      if (one == decides) return decides;
      if (!one.has_value()) all.reset();
    }
    return all;
  }
  if (kind == Kind::kNot) {
    const auto one = parts.front().holds(look);
    if (!one.has_value()) return std::nullopt;
    return !*one;
  }
  const AttributeValue has = look(name);
  const bool is_absent = std::holds_alternative<std::monostate>(has);
  if (kind == Kind::kIsNull) return is_absent;
  if (is_absent) return std::nullopt;
  switch (kind) {
    case Kind::kIn:
      return std::any_of(values.begin(), values.end(),
                         [&](const AttributeValue& value) { return is_equal(has, value); });
    case Kind::kBetween:
      return values[0] <= has && has <= values[1];
    case Kind::kStartsWith:
      return std::get<std::string>(has).starts_with(std::get<std::string>(values[0]));
    default:
      return sign == Sign::kEqual  ? is_equal(has, values[0])
             : sign == Sign::kLess ? has < values[0]
                                   : has <= values[0];
  }
}

absl::StatusOr<Filter> Filter::parse(std::string_view text, Types types) {
  Filter filter;
  FL_TRY_ASSIGN(auto tokens, split(text));
  if (tokens.size() == 1) return filter;
  FL_TRY_ASSIGN(Node root, Parser(std::move(tokens), types).parse());
  filter.root_ = std::make_shared<const Node>(std::move(root));
  return filter;
}

bool Filter::matches(Look look) const {
  return root_ == nullptr || root_->holds(look).value_or(false);
}

}  // namespace fairlead::api
