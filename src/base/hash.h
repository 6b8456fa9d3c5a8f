#pragma once

#include <cstdint>
#include <string_view>

namespace fairlead {

// FNV-1a with a final mix. It decides which shard owns a workflow or a queue, so it reaches the
// disk: DO NOT CHANGE.
inline uint64_t stable_hash(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325) {
  uint64_t hash = seed;
  for (const char byte : bytes) {
    hash ^= static_cast<uint8_t>(byte);
    hash *= 0x100000001b3;
  }
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15;
}

}  // namespace fairlead
