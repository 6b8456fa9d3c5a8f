#pragma once

#include <string>

#include "api/fairlead/task_queue.pb.h"
#include "model/model.pb.h"
#include "queue/views.h"
#include "shard/queue_requests.h"

// The engine's views as messages. `now` is the moment for which ages are told.
namespace fairlead::api::queues {

google::protobuf::Duration duration_of(DurationNs duration);
google::protobuf::Timestamp timestamp_of(TimeNs time);

v1::TaskQueueType type_of(model::TaskKind kind);
v1::TaskQueue task_queue_of(const shard::QueueRef& queue, const std::string& namespace_name);
v1::WeightSource weight_source_of(bool is_overridden);
v1::Pause pause_of(const model::QueueRules::Pause& pause);
void write_holds(uint8_t holds, google::protobuf::RepeatedField<int>& out);

v1::TaskQueueConfig config_of(const model::QueueRules& rules);
v1::KeyConfig key_config_of(const model::QueueRules& rules, const std::string& key);

v1::Admission admission_of(const admission::Payload& payload);
// All but the queue's name and its admission.
v1::DescribeTaskQueueResponse description_of(const shard::QueueView& view, TimeNs now);
// `recent` is the number of dispatches that `view.recent` is a part of.
v1::Key key_of(const queue::KeyView& view, size_t recent, TimeNs now);

}  // namespace fairlead::api::queues
