#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace fairlead {

// The only source of chance, so that a simulation can be replayed from a seed. Not thread-safe:
// each owner has its own.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // A generator seeded by the operating system.
  static Random from_system();

  uint64_t next();
  // A number in [0, bound).
  uint64_t below(uint64_t bound);
  bool chance(double probability);

 private:
  uint64_t state_;
};

// A UUID as 36 characters. Version 7: ids made later sort later, which keeps related rows together.
std::string make_uuid(Random& random, TimeNs now);
// The 16 bytes of a UUID in text form, or an empty string when the text is not a UUID.
std::string uuid_to_bytes(std::string_view text);
std::string uuid_from_bytes(std::string_view bytes);

}  // namespace fairlead
