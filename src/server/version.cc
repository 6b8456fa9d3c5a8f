#include "server/version.h"

namespace fairlead::server {

std::string_view version() { return FAIRLEAD_VERSION; }

}  // namespace fairlead::server
