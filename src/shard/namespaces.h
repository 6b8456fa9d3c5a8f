#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "model/model.pb.h"

namespace fairlead::shard {

using NamespacePtr = std::shared_ptr<const model::NamespaceRow>;

// All namespaces, in memory. Looking one up is cheap and may happen on any thread; changes are
// durable before they are visible. Deleted ones are found only by `list`.
class NamespaceRegistry {
 public:
  virtual ~NamespaceRegistry() = default;

  // NamespaceNotFound if there is none of that name; InvalidArgument if the name is empty.
  virtual absl::StatusOr<NamespacePtr> find(std::string_view name) const = 0;
  virtual absl::StatusOr<NamespacePtr> find_by_id(std::string_view id) const = 0;
  virtual NamespacePtr find_by_num(uint32_t num) const = 0;
  // In the order of their names.
  virtual std::vector<NamespacePtr> list() const = 0;

  using Changed = absl::AnyInvocable<void(absl::StatusOr<NamespacePtr>)>;
  // `row` needs name, retention and whatever else is to be kept; id, number and state are given
  // here.
  virtual void add(model::NamespaceRow row, Changed reply) = 0;
  // Applies `change` to the present row and keeps the result.
  virtual void update(std::string name,
                      absl::AnyInvocable<absl::Status(model::NamespaceRow&)> change,
                      Changed reply) = 0;
  // Takes its name away: it is deleted and called otherwise from now on, and the name is free.
  virtual void remove(std::string name, Changed reply) = 0;
};

}  // namespace fairlead::shard
