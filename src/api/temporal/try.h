#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Leaves the function with the status of `expression` unless it is OK.
#define FL_TRY(expression)                                                        \
  do {                                                                            \
    if (absl::Status fl_status = (expression); !fl_status.ok()) return fl_status; \
  } while (false)

#define FL_TRY_JOIN_(a, b) a##b
#define FL_TRY_JOIN(a, b) FL_TRY_JOIN_(a, b)
#define FL_TRY_ASSIGN_(result, target, expression) \
  auto result = (expression);                      \
  if (!result.ok()) return result.status();        \
  target = *std::move(result)

// Assigns the value of a StatusOr, or leaves the function with its status.
#define FL_TRY_ASSIGN(target, expression) \
  FL_TRY_ASSIGN_(FL_TRY_JOIN(fl_result_, __LINE__), target, expression)
