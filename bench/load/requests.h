#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead::load {

// Where a run does its work. Each run has names of its own, so nothing is left over from the last.
struct Names {
  std::string name_space;
  std::string task_queue;
  std::string sticky_queue;
  std::string workflow_prefix;

  static Names fresh(const std::string& name_space);
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
  std::string_view complete_workflow(std::string_view token);
  // The answer to an activity task.
  std::string_view complete_activity(std::string_view token);
  std::string_view terminate(int64_t index);

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
};

WorkflowTask read_workflow_task(std::string_view bytes);
ActivityTask read_activity_task(std::string_view bytes);

}  // namespace fairlead::load
