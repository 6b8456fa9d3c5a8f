#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "api/temporal/filter.h"
#include "base/strong.h"
#include "base/time.h"
#include "temporal/api/worker/v1/message.pb.h"

namespace fairlead::api {

// What workers last said of themselves. In memory: whoever is alive says it again within a minute.
class Workers {
 public:
  using Heartbeat = temporal::api::worker::v1::WorkerHeartbeat;

  // Heartbeats without an instance key cannot be kept, and more than so many in a namespace are
  // not.
  absl::Status put(NamespaceNum ns, const Heartbeat& heartbeat, TimeNs now);

  std::optional<Heartbeat> find(NamespaceNum ns, const std::string& instance_key, TimeNs now);

  // Those that the filter lets pass, in the order of their instance keys, after `after`.
  std::vector<Heartbeat> list(NamespaceNum ns, const Filter& filter, bool with_system,
                              const std::string& after, size_t max, TimeNs now);

  static AttributeType type_of(std::string_view attribute);

 private:
  struct Entry {
    Heartbeat heartbeat;
    TimeNs heard_at = 0;
  };
  using Key = std::pair<NamespaceNum, std::string>;

  void forget(TimeNs now);

  std::mutex mutex_;
  std::map<Key, Entry> workers_;
  TimeNs forget_at_ = 0;
};

}  // namespace fairlead::api
