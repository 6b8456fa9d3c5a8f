#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "history/transaction.h"
#include "shard/queue_host.h"
#include "shard/runs.h"
#include "store/store.h"

namespace fairlead::shard {

// One step of the server: what an input changes, in one write batch, and what is told to whom once
// that batch is durable. It may touch more than one run of a shard (a start that terminates the run
// before it).
struct Step {
  struct Part {
    RunEntry* entry;
    history::Transaction tx;
    size_t next_offer = 0;
    bool held_task = false;  // a worker had its workflow task when the step began
    int task_starts = 0;     // workflow tasks handed out in this step
  };

  // The start of a waiting task: its queue's owner adds to the batch what it has to remember, and
  // nothing else of that queue may be written in between.
  struct Start {
    ShardId owner;
    QueueAddress queue;
    queue::Waiting waiting;
  };
  // A task that goes out without having waited in its queue, for which its key pays.
  struct Charge {
    ShardId owner;
    QueueAddress queue;
    model::Priority priority;
  };

  // Who would like to take new activities along with the answer to this step.
  struct Eager {
    std::string identity;
    std::function<void(ActivityTask)> give;
  };

  std::vector<std::unique_ptr<Part>> parts;
  std::optional<Eager> eager;
  std::optional<Start> start;
  std::vector<Permit> permits;  // of the tasks that it hands out
  std::vector<Charge> charges;
  store::WriteBatch batch;
  // Run after the batch is written and before it is durable, on the shard's own executor: answers
  // that need the events of this very step are put together here.
  std::vector<Job> after_write;
  // Run after the batch is durable, on any thread: replies.
  std::vector<Job> effects;
};

}  // namespace fairlead::shard
