// Reading a run's history, and waiting for more of it.

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/wire.h"
#include "shard/shard.h"
#include "shard/stored_events.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

constexpr int64_t kFewEvents = 16;
constexpr size_t kPageBytesMax = 8 << 20;

// The part of a batch that begins with event `from`.
std::string_view from_event(std::string_view batch, int64_t first_id, int64_t from) {
  size_t skipped = 0;
  for_each_event(batch, first_id, [&](int64_t id, std::string_view raw) {
    if (id < from) skipped += raw.size();
  });
  return batch.substr(skipped);
}

}  // namespace

Shard::Slice Shard::collect(const RunEntry& entry, int64_t from, int max_batches) {
  Slice slice;
  slice.next_event = from;
  const int64_t end = entry.run.state.next_event_id();
  if (from >= end) return slice;
  int batches = 0;
  const auto add = [&](int64_t first_id, std::string_view batch, int64_t next_id) {
    slice.history.append(first_id < from ? from_event(batch, first_id, from) : batch);
    slice.next_event = next_id;
    return ++batches < max_batches && slice.history.size() < kPageBytesMax;
  };
  const auto add_stored = [&](int64_t first_id, std::string_view batch) {
    int64_t next_id = first_id;
    for_each_event(batch, first_id, [&](int64_t, std::string_view) { ++next_id; });
    return add(first_id, batch, next_id) && next_id < end;
  };
  const int64_t recent = entry.recent.empty() ? end : entry.recent.front().first;
  if (from == 1 && recent - from <= kFewEvents) {
    // A few batches are found faster by their keys: each begins where the one before it ends.
    while (slice.next_event < recent) {
      const auto key = store::keys::events(id_, entry.key, slice.next_event);
      const auto batch = world_.store->get(key);
      FL_ASSERT(batch.ok() && batch->has_value(), "a run's history has no holes");
      if (!add_stored(slice.next_event, **batch)) return slice;
    }
  }
  if (recent <= slice.next_event) {
    for (size_t i = 0; i < entry.recent.size(); ++i) {
      const int64_t next_id = i + 1 < entry.recent.size() ? entry.recent[i + 1].first : end;
      if (next_id <= slice.next_event) continue;
      if (!add(entry.recent[i].first, entry.recent[i].second, next_id)) break;
    }
    return slice;
  }
  each_batch(entry.key, from, add_stored);
  return slice;
}

void Shard::each_batch(const std::string& key, int64_t from,
                       absl::FunctionRef<bool(int64_t first_id, std::string_view batch)> visit) {
  const auto range = store::keys::events(id_, key);
  std::string begin = store::keys::events(id_, key, from);
  // `from` may be in the middle of a batch, whose row then stands before it.
  if (from > 1) {
    const auto status =
        world_.store->scan_reverse(range.begin, store::keys::events(id_, key, from + 1),
                                   [&](std::string_view row, std::string_view) {
                                     begin = row;
                                     return false;
                                   });
    FL_ASSERT(status.ok(), "the store can be read");
  }
  const auto status =
      world_.store->scan(begin, range.end, [&](std::string_view row, std::string_view value) {
        return visit(first_event_of(row), value);
      });
  FL_ASSERT(status.ok(), "the store can be read");
}

std::string Shard::event_bytes(const RunEntry& entry, int64_t event_id) {
  const auto slice = collect(entry, event_id, 1);
  wire::Reader reader(slice.history);
  return reader.next() ? std::string(reader.raw()) : "";
}

bool Shard::has_page(const RunEntry& entry, const HistoryRequest& request) const {
  if (!entry.run.is_open()) return true;
  if (request.transitions_seen.has_value()) {
    return entry.run.state.state_transitions() > *request.transitions_seen;
  }
  return !request.close_event_only && request.from_event < entry.run.state.next_event_id();
}

HistoryPage Shard::make_page(RunEntry& entry, const HistoryRequest& request) {
  HistoryPage page;
  const int64_t end = entry.run.state.next_event_id();
  page.run_id = entry.run.state.run_id();
  page.is_open = entry.run.is_open();
  page.next_event = request.from_event;
  if (request.transitions_seen.has_value()) return page;
  if (request.close_event_only) {
    if (!page.is_open) {
      page.history = event_bytes(entry, end - 1);
      page.next_event = end;
    }
    return page;
  }
  auto slice = collect(entry, request.from_event, request.max_batches);
  page.history = std::move(slice.history);
  page.next_event = slice.next_event;
  page.at_end = slice.next_event >= end;
  if (page.is_open && page.at_end && request.from_event <= end) {
    page.history.append(history::virtual_events(entry.run, codec_of(entry)));
  }
  return page;
}

void Shard::read_history(HistoryRequest request, Reply<HistoryPage> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<HistoryPage> answer) mutable {
        const bool must_wait = request.wait_new_event && !has_page(entry, request);
        if (!must_wait || request.wait_until <= now() || is_closed_) {
          world_.commits->after_durable(
              [page = make_page(entry, request), answer = std::move(answer)]() mutable {
                answer(std::move(page));
              });
          return;
        }
        const std::string key = entry.key;
        const auto number = ++last_waiter_;
        const auto alarm = alarms_.set(request.wait_until, [this, key, number] {
          auto* waited = runs_.find(key);
          if (waited == nullptr) return;
          for (size_t i = 0; i < waited->waiters.size(); ++i) {
            if (waited->waiters[i].number != number) continue;
            auto waiter = std::move(waited->waiters[i]);
            waited->waiters.erase(waited->waiters.begin() + static_cast<std::ptrdiff_t>(i));
            HistoryPage page;
            page.run_id = waited->run.state.run_id();
            // What a step under way has decided is not so yet: the reader comes again for it.
            page.is_open = waited->is_locked || waited->run.is_open();
            page.next_event = waiter.request.from_event;
            waiter.reply(std::move(page));
            return;
          }
        });
        entry.waiters.push_back({number, std::move(request), std::move(answer), alarm});
        schedule_tick();
      });
}

void Shard::wake_waiters(Step& step, RunEntry& entry) {
  for (size_t i = 0; i < entry.waiters.size();) {
    if (!has_page(entry, entry.waiters[i].request)) {
      ++i;
      continue;
    }
    auto waiter = std::move(entry.waiters[i]);
    entry.waiters.erase(entry.waiters.begin() + static_cast<std::ptrdiff_t>(i));
    alarms_.cancel(waiter.alarm);
    reply_after(step, [page = make_page(entry, waiter.request),
                       reply = std::move(waiter.reply)]() mutable { reply(std::move(page)); });
  }
}

void Shard::read_history_reverse(HistoryRequest request, Reply<HistoryPage> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<HistoryPage> answer) {
        HistoryPage page;
        page.run_id = entry.run.state.run_id();
        page.is_open = entry.run.is_open();
        const int64_t end = entry.run.state.next_event_id();
        const int64_t below = request.from_event <= 0 ? end : std::min(request.from_event, end);
        const auto range = store::keys::events(id_, entry.key);
        int batches = 0;
        page.next_event = below;
        const auto status = world_.store->scan_reverse(
            range.begin, store::keys::events(id_, entry.key, below),
            [&](std::string_view key, std::string_view value) {
              std::vector<std::string_view> events;
              const int64_t first_id = first_event_of(key);
              for_each_event(value, first_id, [&](int64_t id, std::string_view raw) {
                if (id < below) events.push_back(raw);
              });
              for (auto at = events.rbegin(); at != events.rend(); ++at) page.history.append(*at);
              page.next_event = first_id;
              return ++batches < request.max_batches && page.history.size() < kPageBytesMax;
            });
        FL_ASSERT(status.ok(), "the store can be read");
        page.at_end = page.next_event <= 1;
        world_.commits->after_durable(
            [page = std::move(page), answer = std::move(answer)]() mutable {
              answer(std::move(page));
            });
      });
}

}  // namespace fairlead::shard
