#pragma once

#include <string>

#include "api/fairlead/task_queue.pb.h"

// The answers of TaskQueueService as people read them. Every text ends with a newline.
namespace fairlead::server {

// "orders (activity)"
std::string name_text(const v1::TaskQueue& queue);
// The name of a key, or what stands for the tasks that have none.
std::string key_name(const std::string& key);

std::string list_text(const v1::ListTaskQueuesResponse& list);
std::string description_text(const v1::DescribeTaskQueueResponse& description);
std::string config_text(const v1::TaskQueueConfig& config);
std::string key_config_text(const v1::KeyConfig& config);
std::string keys_text(const v1::ListKeysResponse& list);
std::string explanation_text(const v1::ExplainResponse& explanation);

}  // namespace fairlead::server
