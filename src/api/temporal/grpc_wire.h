#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/temporal/call.h"
#include "base/time.h"

// The small encodings by which gRPC travels inside HTTP/2.
namespace fairlead::api {

// gRPC's codes, where the transport itself has something to say.
inline constexpr int kResourceExhausted = 8;
inline constexpr int kUnimplemented = 12;
inline constexpr int kInternal = 13;

// "5S", "200m": how long a client waits. Nothing if the text is not of that form.
std::optional<DurationNs> parse_grpc_timeout(std::string_view text);

// `grpc-message`: what is not printable ASCII becomes %XX.
std::string encode_grpc_message(std::string_view text);

// `…-bin` headers: base64 without padding.
std::string encode_binary_header(std::string_view bytes);

// A flag for compression and the length: what precedes each message.
inline constexpr size_t kMessagePrefixBytes = 5;
struct MessagePrefix {
  explicit MessagePrefix(size_t length);
  char bytes[kMessagePrefixBytes];
};

// A message that came in, without its prefix.
struct GrpcMessage {
  std::string bytes;
  size_t skip = 0;  // of `bytes`, before the message begins

  std::string_view view() const { return std::string_view(bytes).substr(skip); }
};

// Cuts what arrives on a call into messages, and decompresses them.
class MessageReader {
 public:
  explicit MessageReader(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // As in `grpc-encoding`. False if we do not know it.
  bool set_encoding(std::string_view name);
  void append(std::string_view bytes) { buffer_.append(bytes); }
  // Bytes are left that were not taken as a message.
  bool has_rest() const { return !buffer_.empty(); }

  // The next whole message, if there is one. `error` is set instead if what came is not a message
  // that we can take; nothing more can be read then.
  std::optional<GrpcMessage> next(std::optional<RpcStatus>* error);

 private:
  std::optional<GrpcMessage> decompress(const GrpcMessage& message,
                                        std::optional<RpcStatus>* error) const;

  const size_t message_bytes_max_;
  bool is_compressible_ = false;
  std::string buffer_;
};

}  // namespace fairlead::api
