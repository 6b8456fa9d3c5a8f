#pragma once

#include <nghttp2/nghttp2.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/temporal/call.h"

// Headers that the transport writes. Nobody else includes this.
namespace fairlead::api {

// A header whose text never changes, so that the library need not copy it.
nghttp2_nv constant_header(std::string_view name, std::string_view value);

// The headers that say how a call ended, and the texts that they point to.
class StatusHeaders {
 public:
  explicit StatusHeaders(const RpcStatus& status);
  // Good for as long as this lives.
  void append_to(std::vector<nghttp2_nv>* headers) const;

 private:
  const std::string code_;
  const std::string message_;
  const std::string details_;
};

// How a call of a method that nobody serves is refused.
std::string unknown_method_text(std::string_view path);

}  // namespace fairlead::api
