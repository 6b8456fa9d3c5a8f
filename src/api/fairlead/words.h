#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "google/protobuf/descriptor.h"

// What is said to people, and to programs that read what people read.
namespace fairlead::api::queues {

// "40 ms", "0.4 s", "12 s", "3 min 5 s", "2 h 4 min", "5 d 3 h": as exact as one would say it.
std::string human_duration(DurationNs duration);

// An enum's value without its prefix: "drain-per-level" for TRANSITION_DRAIN_PER_LEVEL. The first
// value of the enum must be its …_UNSPECIFIED.
std::string word_of(const google::protobuf::EnumValueDescriptor& value);
// The number of the value with that word. UNSPECIFIED has none.
std::optional<int> number_of_word(const google::protobuf::EnumDescriptor& type,
                                  std::string_view word);

// "3 tasks", "1 task".
std::string count_of(int64_t number, std::string_view singular);

}  // namespace fairlead::api::queues
