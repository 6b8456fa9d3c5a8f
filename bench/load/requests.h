#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::load {

// Where a run does its work. Each run has names of its own, so nothing is left over from the last.
struct Names {
  std::string name_space;
  std::string task_queue;
  std::string sticky_queue;
  std::string workflow_prefix;

  static Names fresh(const std::string& name_space);
};

// An activity that competes for its share under a fairness key.
struct KeyedActivity {
  int64_t id;
  int key;
  double weight;
  // 0 leaves it to the server.
  int priority;
};

// What an operator sets on the activity queue. Weights are those of the keys 0, 1, …
struct QueueSettings {
  std::vector<double> weights;
  // Tasks per second of a key of weight 1; 0 leaves it alone.
  double key_rps = 0;
};

// Makes the bytes of every request.
//
// All that stays the same is serialised once. What differs (a token, an id) is appended: in
// protobuf's wire format a message followed by another field is the message with that field.
// The buffers are reused, so a view is good until the next call of the same function.
class Requests {
 public:
  explicit Requests(const Names& names);

  std::string_view start(int64_t index);
  std::string_view poll_workflow() const { return poll_workflow_; }
  std::string_view poll_sticky() const { return poll_sticky_; }
  std::string_view poll_activity() const { return poll_activity_; }
  // Answers to a workflow task.
  std::string_view schedule_activities(std::string_view token, int64_t activities);
  std::string_view schedule_keyed(std::string_view token,
                                  const std::vector<KeyedActivity>& activities);
  std::string_view complete_workflow(std::string_view token);
  // The answer to an activity task.
  std::string_view complete_activity(std::string_view token);
  std::string_view terminate(int64_t index);
  // Rare, so these are made when they are asked for. The latter two are about the activity queue.
  std::string register_namespace() const;
  std::string count_backlog() const;
  std::string configure_queue(const QueueSettings& settings) const;

  std::string workflow_id(int64_t index) const;

 private:
  Names names_;
  std::string start_;
  std::string poll_workflow_;
  std::string poll_sticky_;
  std::string poll_activity_;
  std::string answer_;
  std::string schedule_one_;
  std::string complete_workflow_;
  std::string complete_activity_;
  std::string terminate_;
  std::string start_out_;
  std::string answer_out_;
  std::string activity_out_;
  std::string terminate_out_;
};

// What a worker needs to know of a polled task. An empty token says that the poll ran out.
struct WorkflowTask {
  std::string_view token;
  int64_t index = -1;
  // What the history tells; a sticky task carries only the news.
  bool is_first = false;
  bool has_activity_result = false;
};
struct ActivityTask {
  std::string_view token;
  std::string_view id;
};

WorkflowTask read_workflow_task(std::string_view bytes);
ActivityTask read_activity_task(std::string_view bytes);
// How many activity tasks wait, as the answer to `count_backlog` says.
int64_t read_backlog(std::string_view bytes);
// Whether the answer to `configure_queue` holds all that was set: a server may not know a field.
bool has_settings(std::string_view bytes, const QueueSettings& settings);

}  // namespace fairlead::load
