#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "api/temporal/call.h"

namespace fairlead::api {

// Counts the calls that were answered RESOURCE_EXHAUSTED, by method and by what their detail says:
// operators have alerts on them. From any thread. There are as many entries as methods times
// causes, at most.
class RefusalCounts {
 public:
  struct Entry {
    std::string operation;  // the method's name without its service
    std::string cause;      // as Temporal writes it into labels
    std::string scope;
    uint64_t count = 0;
  };

  // `method` is "/package.Service/Method". Other codes are not counted.
  void count(std::string_view method, const RpcStatus& status);
  // By operation and cause.
  std::vector<Entry> list() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, int>, uint64_t> counts_;  // operation, cause, scope
};

}  // namespace fairlead::api
