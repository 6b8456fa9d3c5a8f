#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead::wire {

// Writes protobuf's wire format straight into a string.
//
// The hot messages (history events, poll answers) are mostly bytes that arrived in wire format and
// leave in wire format. Splicing them costs a copy; building message objects from them would cost a
// parse and a second serialisation. Fields with their default value are left out, as proto3 does.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(out) {}

  void varint(uint32_t field, uint64_t value) {
    if (value == 0) return;
    tag(field, 0);
    raw_varint(value);
  }
  void boolean(uint32_t field, bool value) { varint(field, value ? 1 : 0); }
  void integer(uint32_t field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void string(uint32_t field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  // Written even when empty: an embedded message that is present, or an element of a repeated
  // field.
  void bytes(uint32_t field, std::string_view value) {
    tag(field, 2);
    raw_varint(value.size());
    out_->append(value);
  }
  void float32(uint32_t field, float value);
  void float64(uint32_t field, double value);

  // Writes an embedded message whose fields `fill` writes.
  template <typename Fill>
  void message(uint32_t field, Fill&& fill) {
    tag(field, 2);
    const size_t length_at = out_->size();
    out_->push_back('\0');
    fill(*this);
    close_message(length_at);
  }

  // google.protobuf.Timestamp and Duration.
  void timestamp(uint32_t field, int64_t nanoseconds_since_epoch);
  void duration(uint32_t field, int64_t nanoseconds);

  void raw(std::string_view bytes) { out_->append(bytes); }

 private:
  void tag(uint32_t field, uint32_t type) { raw_varint(field << 3 | type); }
  void raw_varint(uint64_t value) {
    while (value >= 0x80) {
      out_->push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_->push_back(static_cast<char>(value));
  }
  void close_message(size_t length_at);

  std::string* out_;
};

// Walks over the fields of one message. Stops at the first malformed byte: `ok()` tells.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field. False at the end, or when the bytes are malformed.
  bool next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  // The value of a varint or fixed field.
  uint64_t number() const { return number_; }
  // The value of a length-delimited field.
  std::string_view bytes() const { return bytes_; }
  // The whole field with its tag, as it stood.
  std::string_view raw() const { return raw_; }

 private:
  bool varint(uint64_t* value);
  bool fixed(size_t width);
  bool fail();

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
  std::string_view raw_;
};

}  // namespace fairlead::wire
