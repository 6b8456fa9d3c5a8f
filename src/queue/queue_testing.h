#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "queue/task_queue.h"

namespace fairlead::queue {

// A queue with its rows, driven as its owner would: every start is one write, and `reopen` is what
// a crash leaves.
class QueueBench : public Backlog {
 public:
  struct Disk {
    std::map<std::tuple<uint32_t, std::string, TaskSeq>, Task> tasks;
    std::map<std::pair<uint32_t, std::string>, std::string> accounts;
    // By version.
    std::map<std::tuple<std::string, uint32_t, std::string, TaskSeq>, Task> pinned;
    std::map<std::tuple<std::string, uint32_t, std::string>, std::string> version_accounts;
    // By group of types, and version.
    std::map<std::tuple<uint32_t, std::string, uint32_t, std::string>, std::string> type_accounts;
    std::map<std::string, std::string> limiters;
    std::map<std::string, int> leases;
    std::string state;
    model::QueueRules rules;
  };

  explicit QueueBench(Settings settings = {}) : settings_(settings) { reopen(); }
  QueueBench(Settings settings, Disk from) : disk(std::move(from)), settings_(settings) {
    reopen();
  }

  std::vector<Numbered> read(const std::string& version, uint32_t level, const std::string& key,
                             TaskSeq from, size_t max) override {
    std::vector<Numbered> found;
    if (!version.empty()) {
      auto at = disk.pinned.lower_bound({version, level, key, from});
      for (; at != disk.pinned.end() && found.size() < max; ++at) {
        const auto& [row_version, row_level, row_key, seq] = at->first;
        if (row_version != version || row_level != level || row_key != key) break;
        found.push_back({seq, at->second});
      }
      return found;
    }
    for (auto at = disk.tasks.lower_bound({level, key, from}); at != disk.tasks.end(); ++at) {
      const auto& [row_level, row_key, seq] = at->first;
      if (row_level != level || row_key != key || found.size() == max) break;
      found.push_back({seq, at->second});
    }
    return found;
  }

  void reopen() {
    queue = std::make_unique<TaskQueue>(this, settings_);
    queue->load_rules(disk.rules);
    model::QueueState state;
    state.ParseFromString(disk.state);
    queue->load_state(state);
    for (const auto& [at, task] : disk.tasks) {
      queue->load_task(std::get<0>(at), std::get<1>(at), {std::get<2>(at), task});
    }
    for (const auto& [at, task] : disk.pinned) {
      const auto& [version, level, key, seq] = at;
      queue->load_task(level, key, {seq, task}, version);
    }
    for (const auto& [at, bytes] : disk.accounts) {
      model::AccountRow row;
      row.ParseFromString(bytes);
      queue->load_account(at.first, at.second, row);
    }
    for (const auto& [at, bytes] : disk.version_accounts) {
      model::AccountRow row;
      row.ParseFromString(bytes);
      queue->load_account(std::get<1>(at), std::get<2>(at), row, std::get<0>(at));
    }
    for (const auto& [at, bytes] : disk.type_accounts) {
      model::AccountRow row;
      row.ParseFromString(bytes);
      queue->load_account(std::get<2>(at), std::get<3>(at), row, std::get<1>(at), std::get<0>(at));
    }
    for (const auto& [key, bytes] : disk.limiters) {
      model::LimiterRow row;
      row.ParseFromString(bytes);
      queue->load_limiter(key, row);
    }
    for (const auto& [key, count] : disk.leases) {
      for (int i = 0; i < count; ++i) queue->load_lease(key);
    }
    queue->loaded(now);
    if (queue->rules_changed()) disk.rules = queue->take_rules();
  }

  Place add(const std::string& key, float weight = 0, uint32_t level = kDefaultLevel,
            const Stream& stream = {}) {
    const Place place = queue->reserve(level, key, stream);
    Task task;
    task.scheduled_id = next_id != 0 ? next_id : static_cast<int64_t>(place.seq.value());
    task.created_ns = now;
    task.weight = weight;
    task.slot = stream.slot;
    task.type = stream.type;
    if (stream.is_pinned()) {
      disk.pinned[{stream.version, level, key, place.seq}] = task;
    } else {
      disk.tasks[{level, key, place.seq}] = task;
    }
    queue->add(place, task, now);
    return place;
  }
  void erase(const Place& place) {
    disk.tasks.erase({place.level, place.key, place.seq});
    disk.pinned.erase({place.stream.version, place.level, place.key, place.seq});
  }
  void add_many(const std::string& key, int count, float weight = 0,
                uint32_t level = kDefaultLevel) {
    for (int i = 0; i < count; ++i) add(key, weight, level);
  }
  void remove(const Place& place) {
    erase(place);
    queue->remove(place, now);
    if (queue->are_rows_due()) write();
  }

  // One start, committed. Nullopt: nothing may go now.
  std::optional<Waiting> start(const std::string& version = {}, uint32_t group = 0) {
    const auto picked = queue->pick(now, version, group);
    if (picked.has_value()) commit(picked->place);
    return picked;
  }
  void commit(const Place& place) {
    erase(place);
    ++disk.leases[place.key];
    queue->started(place, now);
    write();
  }
  void finish(const std::string& key) {
    if (--disk.leases[key] == 0) disk.leases.erase(key);
    queue->release(key, now);
  }
  void write() {
    for (auto& change : queue->take_rows()) {
      switch (change.table) {
        case RowChange::Table::kAccount:
          if (change.group != 0) {
            put(disk.type_accounts,
                std::tuple(change.group, change.version, change.level, change.key), change.value);
          } else if (change.version.empty()) {
            put(disk.accounts, std::pair(change.level, change.key), change.value);
          } else {
            put(disk.version_accounts, std::tuple(change.version, change.level, change.key),
                change.value);
          }
          break;
        case RowChange::Table::kLimiter:
          put(disk.limiters, change.key, change.value);
          break;
        case RowChange::Table::kState:
          disk.state = *change.value;
          break;
      }
    }
    if (queue->rules_changed()) disk.rules = queue->take_rules();
  }
  template <typename Change>
  void change_rules(Change change) {
    auto rules = queue->rules();
    change(rules);
    disk.rules = queue->set_rules(std::move(rules), now);
    write();
  }

  void set_type_list(uint32_t slot, const std::optional<TypeList>& list) {
    queue->set_type_list(slot, list.has_value() ? &*list : nullptr);
    write();
  }

  // Keys of the next starts, as far as they go.
  std::vector<std::string> start_keys(int count) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) {
      const auto started = start();
      if (!started.has_value()) break;
      keys.push_back(started->place.key);
    }
    return keys;
  }

  Disk disk;
  std::unique_ptr<TaskQueue> queue;
  TimeNs now = 1'000'000 * kSecond;
  int64_t next_id = 0;  // of the next task; 0: its number

 private:
  template <typename Map, typename Key>
  static void put(Map& map, const Key& key, const std::optional<std::string>& value) {
    if (value.has_value()) {
      map[key] = *value;
    } else {
      map.erase(key);
    }
  }

  Settings settings_;
};

}  // namespace fairlead::queue
