#pragma once

#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/wire.h"

// A run's history is stored in batches: what one step has written. A batch's key ends with the id
// of its first event.
namespace fairlead::shard {

// The framed events of a batch, one by one, with their ids.
template <typename Visit>
void for_each_event(std::string_view batch, int64_t first_id, Visit visit) {
  wire::Reader reader(batch);
  for (int64_t id = first_id; reader.next(); ++id) visit(id, reader.raw());
  FL_ASSERT(reader.ok(), "stored events are framed");
}

inline int64_t first_event_of(std::string_view key) {
  int64_t id = 0;
  for (const char byte : key.substr(key.size() - 8)) id = id << 8 | static_cast<uint8_t>(byte);
  return id;
}

}  // namespace fairlead::shard
