#include "api/temporal/grpc_wire.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::api {

namespace {

// The protocol allows no more digits.
constexpr size_t kTimeoutDigitsMax = 8;
// By zlib's convention: the largest window, and the format is told from the first bytes.
constexpr int kAnyZlibFormat = 15 + 32;

RpcStatus too_large(size_t bytes, size_t bytes_max) {
  return {kResourceExhausted,
          absl::StrCat("grpc: received message larger than max (", bytes, " vs. ", bytes_max, ")"),
          ""};
}

}  // namespace

std::optional<DurationNs> parse_grpc_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - 1);
  int64_t value = 0;
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      !absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &value)) {
    return std::nullopt;
  }
  switch (text.back()) {
    case 'H':
      return value > kNever / kHour ? kNever : value * kHour;
    case 'M':
      return value * kMinute;
    case 'S':
      return value * kSecond;
    case 'm':
      return value * kMillisecond;
    case 'u':
      return value * (kMillisecond / 1'000);
    case 'n':
      return value;
    default:
      return std::nullopt;
  }
}

std::string encode_grpc_message(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<uint8_t>(c);
    out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

std::string encode_binary_header(std::string_view bytes) {
  std::string out = absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
  while (!out.empty() && out.back() == '=') out.pop_back();
  return out;
}

MessagePrefix::MessagePrefix(size_t length)
    : bytes{0, static_cast<char>(length >> 24), static_cast<char>(length >> 16),
            static_cast<char>(length >> 8), static_cast<char>(length)} {}

bool MessageReader::set_encoding(std::string_view name) {
  is_compressible_ = name == "gzip" || name == "deflate";
  return is_compressible_ || name == "identity";
}

std::optional<GrpcMessage> MessageReader::next(std::optional<RpcStatus>* error) {
  if (buffer_.size() < kMessagePrefixBytes) return std::nullopt;
  const auto* bytes = reinterpret_cast<const uint8_t*>(buffer_.data());
  const uint8_t flag = bytes[0];
  const size_t length =
      size_t{bytes[1]} << 24 | size_t{bytes[2]} << 16 | size_t{bytes[3]} << 8 | size_t{bytes[4]};
  if (flag > 1 || (flag == 1 && !is_compressible_)) {
    *error = {kInternal,
              absl::StrCat("a message has the compression flag ", flag,
                           ", which its call did not announce"),
              ""};
    return std::nullopt;
  }
  if (length > message_bytes_max_) {
    *error = too_large(length, message_bytes_max_);
    return std::nullopt;
  }
  const size_t end = kMessagePrefixBytes + length;
  if (buffer_.size() < end) {
    buffer_.reserve(end);
    return std::nullopt;
  }
  GrpcMessage message;
  message.skip = kMessagePrefixBytes;
  if (buffer_.size() == end) {
    message.bytes = std::move(buffer_);
    buffer_.clear();
  } else {
    message.bytes = buffer_.substr(0, end);
    buffer_.erase(0, end);
  }
  return flag == 1 ? decompress(message, error) : std::move(message);
}

std::optional<GrpcMessage> MessageReader::decompress(const GrpcMessage& message,
                                                     std::optional<RpcStatus>* error) const {
  const std::string_view packed = message.view();
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  GrpcMessage plain;
  int result = inflateInit2(&stream, kAnyZlibFormat);
  while (result == Z_OK && plain.bytes.size() <= message_bytes_max_) {
    const size_t had = plain.bytes.size();
    // One byte more than is allowed, so that a message of just the allowed size is seen to end.
    const size_t room =
        std::min(std::max(had, packed.size() * 4 + 64), message_bytes_max_ + 1 - had);
    plain.bytes.resize(had + room);
    stream.next_out = reinterpret_cast<Bytef*>(plain.bytes.data() + had);
    stream.avail_out = static_cast<uInt>(room);
    result = inflate(&stream, Z_NO_FLUSH);
    plain.bytes.resize(had + room - stream.avail_out);
  }
  inflateEnd(&stream);
  if (plain.bytes.size() > message_bytes_max_) {
    *error = too_large(plain.bytes.size(), message_bytes_max_);
    return std::nullopt;
  }
  if (result != Z_STREAM_END) {
    *error = {kInternal, "the request could not be decompressed", ""};
    return std::nullopt;
  }
  return plain;
}

}  // namespace fairlead::api
