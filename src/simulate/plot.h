#pragma once

#include <string>

#include "simulate/simulation.h"

namespace fairlead::simulate {

// The dispatched tasks of each group over time as an SVG picture; dashed: what the ideal server
// would have given it, if shares are counted in dispatches.
std::string plot(const Plan& plan, const Result& result);

}  // namespace fairlead::simulate
