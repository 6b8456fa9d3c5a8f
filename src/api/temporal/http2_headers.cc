#include "api/temporal/http2_headers.h"

#include "absl/strings/str_cat.h"
#include "api/temporal/grpc_wire.h"

namespace fairlead::api {

namespace {

nghttp2_nv header(std::string_view name, std::string_view value) {
  // The library copies what it is given.
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

nghttp2_nv constant_header(std::string_view name, std::string_view value) {
  nghttp2_nv nv = header(name, value);
  nv.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return nv;
}

StatusHeaders::StatusHeaders(const RpcStatus& status)
    : code_(absl::StrCat(status.code)),
      message_(encode_grpc_message(status.message)),
      details_(encode_binary_header(status.details)) {}

void StatusHeaders::append_to(std::vector<nghttp2_nv>* headers) const {
  headers->push_back(header("grpc-status", code_));
  if (!message_.empty()) headers->push_back(header("grpc-message", message_));
  if (!details_.empty()) headers->push_back(header("grpc-status-details-bin", details_));
}

// "/package.Service/Method", which is what a well-behaved client sends.
std::string unknown_method_text(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0) {
    return absl::StrCat("malformed method name: \"", absl::string_view(path.data(), path.size()),
                        "\"");
  }
  const std::string method(path.substr(slash + 1));
  const std::string service(path.substr(1, slash - 1));
  return absl::StrCat("unknown method ", method, " for service ", service);
}

}  // namespace fairlead::api
