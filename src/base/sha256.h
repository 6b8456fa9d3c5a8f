#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead {

// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for requests that carry a signature. Not for
// large data: it is plain code.
std::array<uint8_t, 32> sha256(std::string_view bytes);
// In small hexadecimal digits.
std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

}  // namespace fairlead
