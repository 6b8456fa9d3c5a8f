#pragma once

#include <optional>
#include <string>

#include "api/durable/json.h"
#include "model/model.pb.h"

namespace fairlead::durable {

// What is wrong with a field of a request.
struct FieldFault {
  std::string field;
  std::string text;
};

// Reads who is served when, which is optional in every part:
//
//   "priority": {"priority_key": 1, "fairness_key": "acme", "fairness_weight": 2.5}
//
// Members of the object that are missing are inherited, or the defaults. A number in place of the
// object, with `fairness_key` and `fairness_weight` beside it, is how newer servers of the API take
// it: their numbers have another scale, so what is beyond ours is taken as our last one.
std::optional<FieldFault> read_priority(const json::object& from, model::Priority* priority);

// For people: null where nothing was asked for.
json::object priority_record(const model::Priority& priority);

}  // namespace fairlead::durable
