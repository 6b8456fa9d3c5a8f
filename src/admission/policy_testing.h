#pragma once

#include <map>
#include <string>

#include "admission/policy.h"
#include "admission/read_settings.h"
#include "gtest/gtest.h"

namespace fairlead::admission {

// The example of the feature's own document.
inline constexpr char kExample[] = R"({
  "production:payments": {
    "workflow_tasks": {
      "max_active_leases_per_queue": 8,
      "max_dispatches_per_minute": 120,
      "dispatch_budget_group": "downstream-openai",
      "max_dispatches_per_minute_per_budget_group": 600
    },
    "activity_tasks": {
      "max_active_leases_per_queue": 12,
      "max_dispatches_per_minute": 240
    }
  },
  "production:*": {
    "workflow_tasks": {
      "max_active_leases_per_namespace": 300,
      "max_dispatches_per_minute_per_namespace": 6000
    },
    "activity_tasks": {
      "max_active_leases_per_namespace": 1200,
      "max_dispatches_per_minute_per_namespace": 12000
    }
  },
  "email": {
    "activity_tasks": {
      "max_active_leases_per_queue": 4,
      "max_dispatches_per_minute": 60,
      "dispatch_budget_group": "downstream-sendgrid",
      "max_dispatches_per_minute_per_budget_group": 300
    }
  },
  "*": {
    "workflow_tasks": { "max_active_leases_per_queue": 50 }
  }
})";

using Environment = std::map<std::string, std::string>;

inline Policies policies_of(const Environment& environment) {
  auto settings = read_environment(environment);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return Policies(settings.ok() ? *std::move(settings) : Settings());
}

inline Policies policies_of(const std::string& overrides) {
  return policies_of(Environment{{"DW_TASK_QUEUE_ADMISSION_OVERRIDES", overrides}});
}

}  // namespace fairlead::admission
