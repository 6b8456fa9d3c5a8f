#pragma once

#include <cstdio>
#include <cstdlib>

// States what must be true for our own code to be right. It stays on in release builds: a server
// that goes on after its bookkeeping broke does more harm than one that stops and is restarted.
#define FL_ASSERT(condition, why)                                                               \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", __FILE__, __LINE__, #condition, \
                   why);                                                                        \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)
