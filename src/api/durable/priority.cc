#include "api/durable/priority.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "queue/priority.h"

namespace fairlead::durable {

namespace {

std::optional<FieldFault> read_fairness(const json::object& from, const std::string& prefix,
                                        model::Priority* priority) {
  if (const auto* key = member(from, "fairness_key")) {
    if (!key->is_string() || key->as_string().size() > queue::kFairnessKeyBytesMax) {
      return FieldFault{prefix + "fairness_key",
                        absl::StrCat("fairness_key must be a string of at most ",
                                     queue::kFairnessKeyBytesMax, " bytes")};
    }
    priority->set_fairness_key(to_std(key->as_string()));
  }
  if (const auto* weight = member(from, "fairness_weight")) {
    priority->set_fairness_weight(weight->is_number() ? weight->to_number<float>() : 0);
    // Not above 0 is also what is too small for the type; 0 would mean that none was given.
    if (!(priority->fairness_weight() > 0) || !queue::check_priority(*priority).ok()) {
      return FieldFault{prefix + "fairness_weight",
                        "fairness_weight must be a number above 0; leave it out for 1"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<FieldFault> read_priority(const json::object& from, model::Priority* priority) {
  const auto* given = member(from, "priority");
  if (given == nullptr || given->is_int64() || given->is_uint64()) {
    if (given != nullptr) {
      const int64_t number = given->is_int64() ? given->as_int64() : int64_t{queue::kLevelsDefault};
      priority->set_priority_key(
          static_cast<int32_t>(std::clamp<int64_t>(number, 1, queue::kLevelsDefault)));
    }
    return read_fairness(from, "", priority);
  }
  if (!given->is_object()) {
    return FieldFault{"priority",
                      "priority must be an object with priority_key, fairness_key and "
                      "fairness_weight, all optional"};
  }
  const auto& object = given->as_object();
  if (member(object, "priority_key") != nullptr) {
    const auto key = integer_of(object, "priority_key");
    if (!key.has_value() || *key < 1 || *key > queue::kLevelsDefault) {
      return FieldFault{"priority.priority_key",
                        absl::StrCat("priority_key must be a whole number from 1, the first to be "
                                     "served, to ",
                                     queue::kLevelsDefault)};
    }
    priority->set_priority_key(static_cast<int32_t>(*key));
  }
  return read_fairness(object, "priority.", priority);
}

json::object priority_record(const model::Priority& priority) {
  json::object record{
      {"priority_key", nullptr}, {"fairness_key", nullptr}, {"fairness_weight", nullptr}};
  if (priority.priority_key() != 0) record["priority_key"] = priority.priority_key();
  if (!priority.fairness_key().empty()) record["fairness_key"] = priority.fairness_key();
  // As it was written: 0.1 and not what the nearest float is as a double.
  double weight = 0;
  if (absl::SimpleAtod(absl::StrCat(priority.fairness_weight()), &weight) && weight != 0) {
    record["fairness_weight"] = weight;
  }
  return record;
}

}  // namespace fairlead::durable
