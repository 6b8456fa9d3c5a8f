#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace fairlead::store {

// The rows of a store that lives in memory. Knows what a batch does; knows nothing of threads,
// durability or failure.
class Image {
 public:
  void apply(const WriteBatch& batch);

  std::optional<std::string> get(std::string_view key) const;
  void scan(std::string_view begin, std::string_view end, const Store::Visit& visit) const;
  void scan_reverse(std::string_view begin, std::string_view end, const Store::Visit& visit) const;

  friend bool operator==(const Image&, const Image&) = default;

 private:
  std::map<std::string, std::string, std::less<>> rows_;
};

}  // namespace fairlead::store
