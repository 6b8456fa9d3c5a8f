#include "shard/run_list.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/random.h"
#include "store/keys.h"

namespace fairlead::shard {

// What one shard has. Nothing is said of runs older than `reached`.
struct RunList::Part {
  std::vector<ListedRun> runs;
  std::string reached;  // a run id; empty: the end
};

RunList::Part RunList::list_shard(ShardId shard, const ListRuns& request) const {
  Part part;
  auto range = store::keys::runs(shard);
  if (!request.before.empty()) {
    range.end = store::keys::run(shard, uuid_to_bytes(request.before));
  }
  const size_t run_at = range.begin.size();
  size_t rows = 0;
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (++rows > kRowsMax || part.runs.size() >= request.max) return false;
    const std::string_view bytes = key.substr(run_at);
    part.reached = uuid_from_bytes(bytes);
    ListedRun listed;
    FL_ASSERT(listed.run.ParseFromArray(value.data(), static_cast<int>(value.size())),
              "a run's row is a run's state");
    const auto& run = listed.run;
    if (run.namespace_num() != request.ns.value() || run.flavour() != request.flavour) return true;
    if (!run.next_run_id().empty() || !request.may_match(run)) return true;
    const auto events = store_.get(store::keys::events(shard, bytes, 1));
    FL_ASSERT(events.ok(), "the store can be read");
    if (events->has_value()) listed.first_events = *std::move(*events);
    if (request.matches(listed)) part.runs.push_back(std::move(listed));
    return true;
  };
  const auto status = store_.scan_reverse(range.begin, range.end, visit);
  FL_ASSERT(status.ok(), "the store can be read");
  const bool is_at_end = rows <= kRowsMax && part.runs.size() < request.max;
  if (is_at_end) part.reached.clear();
  return part;
}

void RunList::list(const ListRuns& request, Reply<RunPage> reply) const {
  RunPage page;
  // Ids are compared as texts: their digits are in the order of their bytes.
  std::string reached;
  for (uint16_t shard = 0; shard < shards_; ++shard) {
    auto part = list_shard(ShardId(shard), request);
    std::move(part.runs.begin(), part.runs.end(), std::back_inserter(page.runs));
    reached = std::max(reached, part.reached);
  }
  std::sort(page.runs.begin(), page.runs.end(),
            [](const ListedRun& a, const ListedRun& b) { return a.run.run_id() > b.run.run_id(); });
  // A shard that stopped early may have more below the point where it did.
  std::erase_if(page.runs, [&](const ListedRun& each) { return each.run.run_id() < reached; });
  page.next = reached;
  if (page.runs.size() > request.max) {
    page.runs.resize(request.max);
    page.next = page.runs.back().run.run_id();
  }
  commits_.after_durable(
      [reply = std::move(reply), page = std::move(page)]() mutable { reply(std::move(page)); });
}

}  // namespace fairlead::shard
