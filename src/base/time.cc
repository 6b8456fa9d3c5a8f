#include "base/time.h"

#include <chrono>

namespace fairlead {

TimeNs SystemClock::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fairlead
