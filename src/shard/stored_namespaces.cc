#include "shard/stored_namespaces.h"

#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {
constexpr char kDefault[] = "default";
constexpr DurationNs kDefaultRetention = 3 * kDay;
// Of the id, in the name that a deleted one gets.
constexpr size_t kMarkLength = 5;

absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }
}  // namespace

absl::Status StoredNamespaces::load() {
  const auto range = store::keys::namespaces();
  bool is_readable = true;
  const auto status =
      store_->scan(range.begin, range.end, [&](std::string_view, std::string_view value) {
        auto row = std::make_shared<model::NamespaceRow>();
        is_readable = row->ParseFromArray(value.data(), static_cast<int>(value.size()));
        if (!is_readable) return false;
        last_num_ = std::max(last_num_, row->num());
        publish(std::move(row));
        return true;
      });
  if (!status.ok()) return status;
  if (!is_readable) return absl::DataLossError("a namespace's row cannot be read");
  if (last_num_ > 0) return absl::OkStatus();

  model::NamespaceRow row;
  row.set_name(kDefault);
  row.set_retention_ns(kDefaultRetention);
  complete(&row);
  store::WriteBatch batch;
  batch.put(store::keys::namespace_row(row.name()), row.SerializeAsString());
  if (const auto written = store_->write(batch); !written.ok()) return written;
  if (const auto synced = store_->sync(); !synced.ok()) return synced;
  publish(std::make_shared<model::NamespaceRow>(std::move(row)));
  return absl::OkStatus();
}

void StoredNamespaces::complete(model::NamespaceRow* row) {
  row->set_num(++last_num_);
  row->set_id(make_uuid(random_, clock_->now()));
  row->set_state(model::NamespaceRow::REGISTERED);
}

void StoredNamespaces::publish(NamespacePtr row) {
  std::unique_lock lock(mutex_);
  by_name_[row->name()] = row;
  by_id_[row->id()] = row;
  by_num_[row->num()] = row;
}

NamespacePtr StoredNamespaces::find_any(std::string_view name) const {
  std::shared_lock lock(mutex_);
  const auto found = by_name_.find(view(name));
  return found == by_name_.end() ? nullptr : found->second;
}

absl::StatusOr<NamespacePtr> StoredNamespaces::find(std::string_view name) const {
  if (name.empty()) return errors::invalid_argument("Namespace is empty.");
  auto row = find_any(name);
  if (row == nullptr || row->state() == model::NamespaceRow::DELETED) {
    return errors::namespace_not_found(name);
  }
  return row;
}

absl::StatusOr<NamespacePtr> StoredNamespaces::find_by_id(std::string_view id) const {
  std::shared_lock lock(mutex_);
  const auto found = by_id_.find(view(id));
  if (found == by_id_.end() || found->second->state() == model::NamespaceRow::DELETED) {
    return errors::namespace_not_found(id);
  }
  return found->second;
}

NamespacePtr StoredNamespaces::find_by_num(uint32_t num) const {
  std::shared_lock lock(mutex_);
  const auto found = by_num_.find(num);
  return found == by_num_.end() ? nullptr : found->second;
}

std::vector<NamespacePtr> StoredNamespaces::list() const {
  std::shared_lock lock(mutex_);
  std::vector<NamespacePtr> rows;
  for (const auto& [name, row] : by_name_) rows.push_back(row);
  return rows;
}

void StoredNamespaces::keep(model::NamespaceRow row, Changed reply) {
  store::WriteBatch batch;
  batch.put(store::keys::namespace_row(row.name()), row.SerializeAsString());
  commits_->write(batch);
  const auto kept = std::make_shared<const model::NamespaceRow>(std::move(row));
  written_[kept->name()] = kept;
  commits_->after_durable([this, kept, reply = std::move(reply)]() mutable {
    publish(kept);
    reply(kept);
  });
}

void StoredNamespaces::add(model::NamespaceRow row, Changed reply) {
  executor_->post([this, row = std::move(row), reply = std::move(reply)]() mutable {
    const bool exists = find_any(row.name()) != nullptr || !adding_.insert(row.name()).second;
    if (exists) {
      reply(errors::namespace_already_exists(row.name()));
      return;
    }
    complete(&row);
    keep(std::move(row), std::move(reply));
  });
}

void StoredNamespaces::update(std::string name,
                              absl::AnyInvocable<absl::Status(model::NamespaceRow&)> change,
                              Changed reply) {
  executor_->post([this, name = std::move(name), change = std::move(change),
                   reply = std::move(reply)]() mutable {
    auto row = latest(name);
    if (!row.ok()) {
      reply(row.status());
      return;
    }
    const uint32_t num = row->num();
    if (const auto status = change(*row); !status.ok()) {
      reply(status);
      return;
    }
    FL_ASSERT(row->name() == name && row->num() == num, "a namespace keeps its name");
    keep(*std::move(row), std::move(reply));
  });
}

absl::StatusOr<model::NamespaceRow> StoredNamespaces::latest(const std::string& name) const {
  // What was written but is not durable yet counts, also if it took the name away.
  const auto written = written_.find(name);
  if (written != written_.end()) {
    if (written->second == nullptr) return errors::namespace_not_found(name);
    return *written->second;
  }
  const auto present = find(name);
  if (!present.ok()) return present.status();
  return **present;
}

// The row moves to its new name in one batch: after a crash there is one of the two.
void StoredNamespaces::remove(std::string name, Changed reply) {
  executor_->post([this, name = std::move(name), reply = std::move(reply)]() mutable {
    auto row = latest(name);
    if (!row.ok()) {
      reply(row.status());
      return;
    }
    row->set_name(absl::StrCat(name, "-deleted-", row->id().substr(0, kMarkLength)));
    row->set_state(model::NamespaceRow::DELETED);
    store::WriteBatch batch;
    batch.erase(store::keys::namespace_row(name));
    batch.put(store::keys::namespace_row(row->name()), row->SerializeAsString());
    commits_->write(batch);
    const auto kept = std::make_shared<const model::NamespaceRow>(*std::move(row));
    written_[name] = nullptr;
    written_[kept->name()] = kept;
    commits_->after_durable([this, name, kept, reply = std::move(reply)]() mutable {
      {
        std::unique_lock lock(mutex_);
        by_name_.erase(name);
      }
      publish(kept);
      executor_->post([this, name] {
        written_.erase(name);
        adding_.erase(name);
      });
      reply(kept);
    });
  });
}

void StoredNamespaces::set_purged(uint32_t num) {
  executor_->post([this, num] {
    const auto row = find_by_num(num);
    if (row == nullptr || row->is_purged()) return;
    auto purged = *row;
    purged.set_is_purged(true);
    keep(std::move(purged), [](const absl::StatusOr<NamespacePtr>&) {});
  });
}

}  // namespace fairlead::shard
