#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/durable/json.h"

// Command contracts: which signals, queries and updates a workflow's code takes, and with which
// arguments, as the worker said that was there when the run started. They stand in the event of the
// start, so they hold for the run as long as it lives, whichever workers come later. A run without
// one takes everything.
namespace fairlead::durable {

// Members of the start's event, from what a worker declared for the workflow's type.
std::string declared_members(const json::object& contract);

struct ContractFault {
  int status = 404;
  std::string reason;
  std::string text;
};

// Whether the run, whose start has this payload, takes a signal, query or update (`kind`) of that
// name with this input, which is an envelope or empty.
std::optional<ContractFault> contract_fault(const json::object& started, std::string_view kind,
                                            std::string_view name, std::string_view input);

}  // namespace fairlead::durable
