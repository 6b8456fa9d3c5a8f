#include "base/random.h"

#include <random>

#include "base/assert.h"

namespace fairlead {

Random Random::from_system() {
  std::random_device device;
  return Random((static_cast<uint64_t>(device()) << 32) | device());
}

// SplitMix64: one addition and three shifts, passes the usual statistical tests, any seed is good.
uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t Random::below(uint64_t bound) {
  FL_ASSERT(bound > 0, "an empty range has no numbers");
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{next()} * bound) >> 64);
}

bool Random::chance(double probability) {
  return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
}

namespace {

constexpr char kHex[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool dash_at(size_t position) {
  return position == 8 || position == 13 || position == 18 || position == 23;
}

}  // namespace

std::string make_uuid(Random& random, TimeNs now) {
  const uint64_t millis = static_cast<uint64_t>(now / kMillisecond);
  const uint64_t high = (millis << 16) | 0x7000 | (random.next() & 0x0fff);
  const uint64_t low = (random.next() & 0x3fffffffffffffff) | 0x8000000000000000;
  std::string bytes(16, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(low >> (56 - 8 * i));
  }
  return uuid_from_bytes(bytes);
}

std::string uuid_to_bytes(std::string_view text) {
  if (text.size() != 36) return "";
  std::string bytes;
  bytes.reserve(16);
  for (size_t i = 0; i < 36;) {
    if (dash_at(i)) {
      if (text[i] != '-') return "";
      ++i;
      continue;
    }
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return "";
    bytes.push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  return bytes;
}

std::string uuid_from_bytes(std::string_view bytes) {
  FL_ASSERT(bytes.size() == 16, "a UUID has 16 bytes");
  std::string text;
  text.reserve(36);
  for (const char byte : bytes) {
    if (dash_at(text.size())) text.push_back('-');
    text.push_back(kHex[static_cast<uint8_t>(byte) >> 4]);
    text.push_back(kHex[static_cast<uint8_t>(byte) & 15]);
  }
  return text;
}

}  // namespace fairlead
