#include "store/log_frame.h"

#include <zlib.h>

#include <limits>

#include "base/assert.h"

namespace fairlead::store {
namespace {

constexpr size_t kNumberBytes = 4;
constexpr size_t kHeaderBytes = 2 * kNumberBytes;
constexpr uint32_t kChecksumStart = 0x666c6c67;  // not zero, see the header

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(kChecksumStart, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string number(size_t value) {
  FL_ASSERT(value <= std::numeric_limits<uint32_t>::max(), "a batch is limited to 4 GiB");
  std::string bytes(kNumberBytes, '\0');
  for (size_t i = kNumberBytes; i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value);
  return bytes;
}

std::optional<uint32_t> take_number(std::string_view* bytes) {
  if (bytes->size() < kNumberBytes) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) value = value << 8 | static_cast<uint8_t>((*bytes)[i]);
  bytes->remove_prefix(kNumberBytes);
  return value;
}

std::optional<std::string> take_text(std::string_view* bytes) {
  const std::optional<uint32_t> size = take_number(bytes);
  if (!size.has_value() || bytes->size() < *size) return std::nullopt;
  std::string text(bytes->substr(0, *size));
  bytes->remove_prefix(*size);
  return text;
}

std::optional<WriteBatch> parse_payload(std::string_view payload) {
  WriteBatch batch;
  while (!payload.empty()) {
    const auto kind = static_cast<WriteBatch::Kind>(payload.front());
    payload.remove_prefix(1);
    std::optional<std::string> key = take_text(&payload);
    std::optional<std::string> value = take_text(&payload);
    if (!key.has_value() || !value.has_value()) return std::nullopt;
    switch (kind) {
      case WriteBatch::Kind::kPut:
        batch.put(*std::move(key), *std::move(value));
        break;
      case WriteBatch::Kind::kErase:
        if (!value->empty()) return std::nullopt;
        batch.erase(*std::move(key));
        break;
      case WriteBatch::Kind::kEraseRange:
        batch.erase_range(*std::move(key), *std::move(value));
        break;
      default:
        return std::nullopt;
    }
  }
  return batch;
}

}  // namespace

void append_frame(const WriteBatch& batch, std::string* log) {
  const size_t start = log->size();
  log->append(kHeaderBytes, '\0');
  for (const WriteBatch::Op& op : batch.ops()) {
    log->push_back(static_cast<char>(op.kind));
    log->append(number(op.key.size())).append(op.key);
    log->append(number(op.value.size())).append(op.value);
  }
  log->replace(start + kNumberBytes, kNumberBytes, number(log->size() - start - kHeaderBytes));
  const std::string_view checked = std::string_view(*log).substr(start + kNumberBytes);
  log->replace(start, kNumberBytes, number(checksum(checked)));
}

std::optional<WriteBatch> take_frame(std::string_view* log) {
  std::string_view rest = *log;
  const std::optional<uint32_t> expected = take_number(&rest);
  const std::string_view checked = rest;
  const std::optional<uint32_t> length = take_number(&rest);
  if (!expected.has_value() || !length.has_value() || rest.size() < *length) return std::nullopt;
  if (checksum(checked.substr(0, kNumberBytes + *length)) != *expected) return std::nullopt;
  std::optional<WriteBatch> batch = parse_payload(rest.substr(0, *length));
  if (batch.has_value()) log->remove_prefix(kHeaderBytes + *length);
  return batch;
}

}  // namespace fairlead::store
