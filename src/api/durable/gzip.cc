#include "api/durable/gzip.h"

#include <zlib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/assert.h"

namespace fairlead::durable {

namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for gzip's header
constexpr int kMemoryLevel = 8;
constexpr size_t kPiece = 64 << 10;

void feed(z_stream* stream, std::string_view bytes) {
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream->avail_in = static_cast<uInt>(bytes.size());
}

}  // namespace

std::string gzipped(std::string_view text) {
  z_stream stream{};
  const int begun = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                                 Z_DEFAULT_STRATEGY);
  FL_ASSERT(begun == Z_OK, "zlib has memory");
  feed(&stream, text);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = deflate(&stream, Z_FINISH);
  FL_ASSERT(ended == Z_STREAM_END, "the bound is one");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

absl::StatusOr<std::string> gunzipped(std::string_view bytes, size_t bytes_max) {
  z_stream stream{};
  FL_ASSERT(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib has memory");
  feed(&stream, bytes);
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= bytes_max) {
    const size_t had = out.size();
    out.resize(had + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(kPiece);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  const bool is_whole = state == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (out.size() > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the body is larger than ", bytes_max, " bytes when it is unpacked"));
  }
  if (!is_whole) return absl::InvalidArgumentError("the body is not whole gzip");
  return out;
}

bool accepts_gzip(std::string_view accept_encoding) {
  for (const auto part :
       absl::StrSplit(absl::string_view(accept_encoding.data(), accept_encoding.size()), ',')) {
    const std::pair<std::string, std::string> named = absl::StrSplit(part, absl::MaxSplits(';', 1));
    const std::string name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(named.first));
    if (name != "gzip" && name != "x-gzip" && name != "*") continue;
    const auto parameter = absl::StripAsciiWhitespace(named.second);
    double quality = 1;
    if (absl::StartsWithIgnoreCase(parameter, "q=") &&
        !absl::SimpleAtod(parameter.substr(2), &quality)) {
      return false;
    }
    return quality > 0;
  }
  return false;
}

}  // namespace fairlead::durable
