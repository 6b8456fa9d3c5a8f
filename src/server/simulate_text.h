#pragma once

#include <string>

#include "simulate/simulation.h"

namespace fairlead::server {

// What a simulation came to: a table for people, with keys that are alike in one row, and JSON with
// every key for scripts.
std::string simulation_text(const simulate::Plan& plan, const simulate::Result& result);
std::string simulation_json(const simulate::Plan& plan, const simulate::Result& result);

}  // namespace fairlead::server
