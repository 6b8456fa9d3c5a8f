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
    bool held_task = false;   // a worker had its workflow task when the step began
    std::string held_key;     // under which its queue counted it
    int task_starts = 0;      // workflow tasks handed out in this step
    bool keeps_slot = false;  // the one handed out took the place of the one that was held
  };

  // The start of a waiting task, or of a new one that its maker takes along: its queue's owner adds
  // to the batch what it has to remember, and nothing else of that queue may be written in between.
  struct Start {
    ShardId owner;
    QueueAddress queue;
    queue::Waiting waiting;
    bool is_claim = false;  // it never waited
  };
  // Who would like to take new tasks along with the answer to this step: activities, and the run's
  // next workflow task.
  struct Eager {
    std::string identity;
    std::function<void(ActivityTask)> give;
    std::function<void(WorkflowTask)> give_next;
    bool goes_on = false;  // asks for more time for what it is doing
  };

  std::vector<std::unique_ptr<Part>> parts;
  std::optional<Eager> eager;
  std::optional<Start> start;
  std::vector<Permit> permits;     // of the tasks that it hands out
  std::vector<SessionHold> holds;  // of those of them that belong to worker sessions
  // The worker of a task is at work, and so is the session that the task belongs to.
  struct SignOfLife {
    NamespaceNum ns;
    std::string session_id;
    std::string worker;
  };
  std::optional<SignOfLife> sign_of_life;
  store::WriteBatch batch;
  // Run after the batch is written and before it is durable, on the shard's own executor: answers
  // that need the events of this very step are put together here.
  std::vector<Job> after_write;
  // Run after the batch is durable, on any thread: replies.
  std::vector<Job> effects;
};

}  // namespace fairlead::shard
