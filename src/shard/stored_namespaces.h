#pragma once

#include <memory>
#include <shared_mutex>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/executor.h"
#include "base/random.h"
#include "shard/commit_log.h"
#include "shard/namespaces.h"
#include "store/store.h"

namespace fairlead::shard {

// The namespaces of a store. Changes are made one after the other on one executor.
class StoredNamespaces final : public NamespaceRegistry {
 public:
  StoredNamespaces(store::Store* store, CommitLog* commits, Executor* executor, Clock* clock,
                   Random random)
      : store_(store), commits_(commits), executor_(executor), clock_(clock), random_(random) {}

  // Reads what the store has, and makes `default` if it has none.
  absl::Status load();

  absl::StatusOr<NamespacePtr> find(std::string_view name) const override;
  absl::StatusOr<NamespacePtr> find_by_id(std::string_view id) const override;
  NamespacePtr find_by_num(uint32_t num) const override;
  std::vector<NamespacePtr> list() const override;
  void add(model::NamespaceRow row, Changed reply) override;
  void update(std::string name, absl::AnyInvocable<absl::Status(model::NamespaceRow&)> change,
              Changed reply) override;
  void remove(std::string name, Changed reply) override;
  // Nothing of a deleted one is left.
  void set_purged(uint32_t num);

 private:
  NamespacePtr find_any(std::string_view name) const;
  void publish(NamespacePtr row);
  // As it was written last.
  absl::StatusOr<model::NamespaceRow> latest(const std::string& name) const;
  void keep(model::NamespaceRow row, Changed reply);
  void complete(model::NamespaceRow* row);

  store::Store* const store_;
  CommitLog* const commits_;
  Executor* const executor_;
  Clock* const clock_;
  Random random_;
  uint32_t last_num_ = 0;
  absl::flat_hash_set<std::string> adding_;  // names given out; on the executor only
  // Rows as they were written last, by name; on the executor only. What is published waits for the
  // disk, and a change must build on the one before it.
  absl::flat_hash_map<std::string, NamespacePtr> written_;

  mutable std::shared_mutex mutex_;
  absl::btree_map<std::string, NamespacePtr> by_name_;
  absl::flat_hash_map<std::string, NamespacePtr> by_id_;
  absl::flat_hash_map<uint32_t, NamespacePtr> by_num_;
};

}  // namespace fairlead::shard
