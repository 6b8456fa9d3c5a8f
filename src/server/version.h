#pragma once

#include <string_view>

namespace fairlead::server {

// "0.1.0": the version in CMakeLists.txt.
std::string_view version();

}  // namespace fairlead::server
