#include "api/durable/avro.h"

#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fairlead::durable {

namespace {

constexpr std::string_view kHeader("\xC3\x01\xE2\xA3\x3D\xFF\x55\x80\x22\x37", 10);
constexpr int kDepthMax = 64;

enum Branch : int64_t {
  kNull = 0,
  kBoolean = 1,
  kLong = 2,
  kDouble = 3,
  kBytes = 4,
  kString = 5,
  kArray = 6,
  kMap = 7,
};

absl::Status refuse(std::string_view what) {
  return absl::InvalidArgumentError(absl::string_view(what.data(), what.size()));
}

void put_long(int64_t value, std::string* out) {
  uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  while (bits >= 0x80) {
    out->push_back(static_cast<char>(bits | 0x80));
    bits >>= 7;
  }
  out->push_back(static_cast<char>(bits));
}

void put_text(std::string_view text, std::string* out) {
  put_long(static_cast<int64_t>(text.size()), out);
  out->append(text);
}

absl::Status put_double(double value, std::string* out) {
  if (!std::isfinite(value)) return refuse("non_finite_float: NaN and infinity have no encoding");
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  put_long(kDouble, out);
  out->append(bytes, 8);
  return absl::OkStatus();
}

absl::Status put(const json::value& value, std::string* out) {
  switch (value.kind()) {
    case json::kind::null:
      put_long(kNull, out);
      return absl::OkStatus();
    case json::kind::bool_:
      put_long(kBoolean, out);
      out->push_back(value.as_bool() ? '\1' : '\0');
      return absl::OkStatus();
    case json::kind::int64:
      put_long(kLong, out);
      put_long(value.as_int64(), out);
      return absl::OkStatus();
    case json::kind::uint64:
      return put_double(static_cast<double>(value.as_uint64()), out);
    case json::kind::double_:
      return put_double(value.as_double(), out);
    case json::kind::string:
      put_long(kString, out);
      put_text({value.as_string().data(), value.as_string().size()}, out);
      return absl::OkStatus();
    case json::kind::array: {
      put_long(kArray, out);
      if (!value.as_array().empty()) put_long(static_cast<int64_t>(value.as_array().size()), out);
      for (const auto& element : value.as_array()) {
        if (const auto status = put(element, out); !status.ok()) return status;
      }
      put_long(0, out);
      return absl::OkStatus();
    }
    case json::kind::object: {
      put_long(kMap, out);
      if (!value.as_object().empty()) put_long(static_cast<int64_t>(value.as_object().size()), out);
      for (const auto& entry : value.as_object()) {
        put_text({entry.key().data(), entry.key().size()}, out);
        if (const auto status = put(entry.value(), out); !status.ok()) return status;
      }
      put_long(0, out);
      return absl::OkStatus();
    }
  }
  return refuse("a JSON value of no known kind");
}

class ValueReader {
 public:
  explicit ValueReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }

  absl::StatusOr<int64_t> number() {
    uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return refuse("invalid_payload_framing: the value ends too early");
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      bits |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    }
    return refuse("integer_overflow: a number has more than 64 bits");
  }

  absl::StatusOr<std::string_view> take(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) > rest_.size()) {
      return refuse("invalid_payload_framing: the value ends too early");
    }
    const auto taken = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return taken;
  }

  absl::StatusOr<std::string_view> text() {
    const auto size = number();
    if (!size.ok()) return size.status();
    return take(*size);
  }

  // Calls `each` for the elements of an array or the entries of a map, block by block.
  template <typename Each>
  absl::Status blocks(Each each) {
    while (true) {
      auto count = number();
      if (!count.ok()) return count.status();
      if (*count == 0) return absl::OkStatus();
      if (*count < 0) {  // then the block's size in bytes follows
        if (const auto size = number(); !size.ok()) return size.status();
        if (*count == INT64_MIN) return refuse("invalid_payload_framing: a block without end");
        *count = -*count;
      }
      for (int64_t i = 0; i < *count; ++i) {
        if (at_end()) return refuse("invalid_payload_framing: the value ends too early");
        if (const auto status = each(); !status.ok()) return status;
      }
    }
  }

  absl::StatusOr<json::value> value(int depth = 0) {
    if (depth > kDepthMax) return refuse("the value is nested too deeply");
    const auto branch = number();
    if (!branch.ok()) return branch.status();
    switch (*branch) {
      case kNull:
        return json::value(nullptr);
      case kBoolean: {
        const auto byte = take(1);
        if (!byte.ok()) return byte.status();
        return json::value((*byte)[0] != 0);
      }
      case kLong: {
        const auto parsed = number();
        if (!parsed.ok()) return parsed.status();
        return json::value(*parsed);
      }
      case kDouble: {
        const auto bytes = take(8);
        if (!bytes.ok()) return bytes.status();
        double parsed = 0;
        std::memcpy(&parsed, bytes->data(), 8);
        if (!std::isfinite(parsed)) return refuse("non_finite_float: NaN and infinity are refused");
        return json::value(parsed);
      }
      case kBytes: {
        const auto bytes = text();
        if (!bytes.ok()) return bytes.status();
        return json::value(absl::Base64Escape(absl::string_view(bytes->data(), bytes->size())));
      }
      case kString: {
        const auto parsed = text();
        if (!parsed.ok()) return parsed.status();
        return json::value(to_json(*parsed));
      }
      case kArray: {
        json::array array;
        const auto status = blocks([&]() -> absl::Status {
          auto element = value(depth + 1);
          if (!element.ok()) return element.status();
          array.push_back(*std::move(element));
          return absl::OkStatus();
        });
        if (!status.ok()) return status;
        return json::value(std::move(array));
      }
      case kMap: {
        json::object object;
        const auto status = blocks([&]() -> absl::Status {
          const auto key = text();
          if (!key.ok()) return key.status();
          auto entry = value(depth + 1);
          if (!entry.ok()) return entry.status();
          object[to_json(*key)] = *std::move(entry);
          return absl::OkStatus();
        });
        if (!status.ok()) return status;
        return json::value(std::move(object));
      }
      default:
        return refuse("invalid_payload_framing: no such branch");
    }
  }

 private:
  std::string_view rest_;
};

}  // namespace

absl::StatusOr<std::string> to_value(const json::value& value) {
  std::string bytes;
  if (const auto status = put(value, &bytes); !status.ok()) return status;
  return bytes;
}

std::string blob_of_value(std::string_view value_bytes) {
  std::string bytes(kHeader);
  bytes.append(value_bytes);
  return absl::Base64Escape(bytes);
}

absl::StatusOr<std::string> to_blob(const json::value& value) {
  const auto bytes = to_value(value);
  if (!bytes.ok()) return bytes.status();
  return blob_of_value(*bytes);
}

absl::StatusOr<json::value> from_value(std::string_view bytes) {
  ValueReader reader(bytes);
  auto value = reader.value();
  if (!value.ok()) return value;
  if (!reader.at_end()) return refuse("invalid_payload_framing: bytes follow the value");
  return value;
}

absl::StatusOr<std::string> value_of_blob(std::string_view blob) {
  std::string bytes;
  if (!absl::Base64Unescape(absl::string_view(blob.data(), blob.size()), &bytes)) {
    return refuse("invalid_payload_framing: the blob is not base64");
  }
  if (bytes.size() < kHeader.size() ||
      std::string_view(bytes).substr(0, 2) != kHeader.substr(0, 2)) {
    return refuse("invalid_payload_framing: the blob does not begin like a value");
  }
  if (std::string_view(bytes).substr(0, kHeader.size()) != kHeader) {
    return refuse("unsupported_payload_schema: the blob has another schema's fingerprint");
  }
  bytes.erase(0, kHeader.size());
  if (const auto value = from_value(bytes); !value.ok()) return value.status();
  return bytes;
}

std::string map_value(const std::map<std::string, std::string>& entries) {
  std::string bytes;
  put_long(kMap, &bytes);
  if (!entries.empty()) put_long(static_cast<int64_t>(entries.size()), &bytes);
  for (const auto& [key, value] : entries) {
    put_text(key, &bytes);
    bytes.append(value);
  }
  put_long(0, &bytes);
  return bytes;
}

absl::StatusOr<std::map<std::string, std::string>> split_map(std::string_view bytes) {
  ValueReader reader(bytes);
  const auto branch = reader.number();
  if (!branch.ok()) return branch.status();
  if (*branch != kMap) return refuse("the value is not a map");
  std::map<std::string, std::string> entries;
  const auto status = reader.blocks([&]() -> absl::Status {
    const auto key = reader.text();
    if (!key.ok()) return key.status();
    const size_t begin = bytes.size() - reader.left();
    if (const auto value = reader.value(); !value.ok()) return value.status();
    const size_t end = bytes.size() - reader.left();
    entries[std::string(*key)] = bytes.substr(begin, end - begin);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return entries;
}

std::string envelope_text(std::string_view blob) {
  return absl::StrCat(R"({"codec":"avro","blob":")", absl::string_view(blob.data(), blob.size()),
                      R"("})");
}

}  // namespace fairlead::durable
