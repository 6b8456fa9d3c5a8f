#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace fairlead::api {

// What an attribute of something listed is, and what a filter may ask of it.
enum class AttributeType : uint8_t { kNone, kKeyword, kKeywordList, kInt, kDouble, kBool, kTime };

// The attribute of one thing. Times are nanoseconds; monostate: it has none.
using AttributeValue =
    std::variant<std::monostate, std::string, std::vector<std::string>, int64_t, double, bool>;

// The condition of a list: what follows WHERE in SQL, as Temporal's clients write it.
//
//   TaskQueue = 'orders' AND (Status = 'Running' OR StartTime > '2026-11-16T00:00:00Z')
//   name = | != | < | <= | > | >= | [NOT] IN | [NOT] BETWEEN | [NOT] STARTS_WITH | IS [NOT] NULL
//
// As in SQL, a comparison with what is not there is neither true nor false.
class Filter {
 public:
  using Types = absl::FunctionRef<AttributeType(std::string_view name)>;
  using Look = absl::FunctionRef<AttributeValue(std::string_view name)>;

  // An error is InvalidArgument and begins with "invalid query: ". An empty text lets all pass.
  static absl::StatusOr<Filter> parse(std::string_view text, Types types);

  bool matches(Look look) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace fairlead::api
