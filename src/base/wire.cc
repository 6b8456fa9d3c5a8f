#include "base/wire.h"

#include <bit>

namespace fairlead::wire {

namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Seconds and nanos of a Timestamp: nanos count forward, also before 1970.
std::pair<int64_t, int64_t> floor_split(int64_t nanoseconds) {
  int64_t seconds = nanoseconds / kNanosPerSecond;
  int64_t nanos = nanoseconds % kNanosPerSecond;
  if (nanos < 0) {
    --seconds;
    nanos += kNanosPerSecond;
  }
  return {seconds, nanos};
}

}  // namespace

void Writer::float32(uint32_t field, float value) {
  if (value == 0) return;
  tag(field, 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out_->push_back(static_cast<char>(bits >> (8 * i)));
}

void Writer::float64(uint32_t field, double value) {
  if (value == 0) return;
  tag(field, 1);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int i = 0; i < 8; ++i) out_->push_back(static_cast<char>(bits >> (8 * i)));
}

void Writer::timestamp(uint32_t field, int64_t nanoseconds_since_epoch) {
  const auto [seconds, nanos] = floor_split(nanoseconds_since_epoch);
  message(field, [&, s = seconds, n = nanos](Writer& w) {
    w.integer(1, s);
    w.integer(2, n);
  });
}

void Writer::duration(uint32_t field, int64_t nanoseconds) {
  message(field, [&](Writer& w) {
    w.integer(1, nanoseconds / kNanosPerSecond);
    w.integer(2, nanoseconds % kNanosPerSecond);
  });
}

// Most embedded messages are short, so one byte is kept for the length; a longer one is moved up.
void Writer::close_message(size_t length_at) {
  size_t length = out_->size() - length_at - 1;
  if (length < 0x80) {
    (*out_)[length_at] = static_cast<char>(length);
    return;
  }
  char encoded[10];
  size_t width = 0;
  while (length >= 0x80) {
    encoded[width++] = static_cast<char>(length | 0x80);
    length >>= 7;
  }
  encoded[width++] = static_cast<char>(length);
  out_->replace(length_at, 1, encoded, width);
}

bool Reader::fail() {
  ok_ = false;
  rest_ = {};
  return false;
}

bool Reader::varint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    // The tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Reader::fixed(size_t width) {
  if (rest_.size() < width) return false;
  number_ = 0;
  for (size_t i = 0; i < width; ++i) {
    number_ |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(width);
  return true;
}

bool Reader::next() {
  if (rest_.empty()) return false;
  const char* start = rest_.data();
  uint64_t tag;
  if (!varint(&tag) || tag >> 32 != 0 || tag >> 3 == 0) return fail();
  field_ = static_cast<uint32_t>(tag >> 3);
  number_ = 0;
  bytes_ = {};
  switch (tag & 7) {
    case 0:
      if (!varint(&number_)) return fail();
      break;
    case 1:
      if (!fixed(8)) return fail();
      break;
    case 2: {
      uint64_t length;
      if (!varint(&length) || length > rest_.size()) return fail();
      bytes_ = rest_.substr(0, length);
      rest_.remove_prefix(length);
      break;
    }
    case 5:
      if (!fixed(4)) return fail();
      break;
    default:
      return fail();
  }
  raw_ = std::string_view(start, static_cast<size_t>(rest_.data() - start));
  return true;
}

}  // namespace fairlead::wire
