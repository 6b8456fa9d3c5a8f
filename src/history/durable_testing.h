#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "history/durable.h"
#include "history/history_testing.h"

namespace fairlead::history {

// A run of the other flavour on the same table top.
struct DurableBench : Bench {
  DurableBench() {
    run.state.set_flavour(model::DURABLE);
    run.state.set_task_timeout_ns(60 * kSecond);
    start();
  }

  LeaseClaim claim() const {
    const auto& task = run.state.workflow_task();
    return {task.scheduled_id(), task.attempt(), "worker"};
  }

  // The worker completes its task. Empty commands: it waits for what it has started.
  absl::Status complete(std::vector<model::Event> commands = {}) {
    if (auto status = check_lease(run, claim(), now); !status.ok()) return status;
    if (auto status = number_steps(run.state, &commands); !status.ok()) return status;
    if (auto refusal = check_commands(run, limits, &commands)) {
      return absl::FailedPreconditionError(refusal->message);
    }
    step([&](Transaction& tx) { complete_durable_task(tx, std::move(commands)); });
    return absl::OkStatus();
  }

  void take_and_complete(std::vector<model::Event> commands = {}) {
    take_task();
    ASSERT_TRUE(complete(std::move(commands)).ok());
  }

  void finish_activity(const std::string& id) {
    take_activity(id);
    step([&](Transaction& tx) {
      complete_activity(tx, *run.find_activity(id), "worker", "result");
    });
  }

  void send(const std::string& id) {
    step([&](Transaction& tx) { signal_durable(tx, id, "poke", "arguments"); });
  }

  bool has_task() const { return run.state.has_workflow_task(); }
};

inline model::Event in_group(model::Event command, int64_t base, int64_t index) {
  auto* step = command.kind() == model::ACTIVITY_SCHEDULED
                   ? command.mutable_activity_scheduled()->mutable_step()
                   : command.mutable_timer_started()->mutable_step();
  step->set_sequence(base + index);
  step->set_group_base(base);
  return command;
}

inline model::Event open_wait_command(const std::string& id,
                                      std::optional<DurationNs> timeout = {}) {
  model::Event command;
  command.set_kind(model::WAIT_OPENED);
  command.mutable_wait()->set_wait_id(id);
  command.mutable_wait()->set_key("ready");
  if (timeout.has_value()) command.mutable_wait()->set_timeout_ns(*timeout);
  return command;
}

}  // namespace fairlead::history
