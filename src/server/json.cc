#include "server/json.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "api/fairlead/words.h"
#include "base/assert.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"
#include "server/logging.h"

namespace fairlead::server {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The shortest text that is read as the same number.
template <typename Number>
std::string number_text(Number number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return std::string(text.data(), end);
}

std::string quoted(const std::string& text) { return absl::StrCat("\"", json_escape(text), "\""); }

class Writer {
 public:
  std::string write(const Message& message) {
    object(message);
    return out_ + "\n";
  }

 private:
  void object(const Message& message) {
    const auto* descriptor = message.GetDescriptor();
    open('{');
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const auto& field = *descriptor->field(i);
      FL_ASSERT(!field.is_map(), "answers list what they have and hold no maps");
      next(i);
      absl::StrAppend(&out_, quoted(field.name()), ": ");
      if (field.is_repeated()) {
        list(message, field);
      } else if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) {
        out_ += "null";
      } else {
        value(message, field, -1);
      }
    }
    close('}', descriptor->field_count());
  }

  void list(const Message& message, const FieldDescriptor& field) {
    const int size = message.GetReflection()->FieldSize(message, &field);
    open('[');
    for (int i = 0; i < size; ++i) {
      next(i);
      value(message, field, i);
    }
    close(']', size);
  }

  // The value of a field, or with an index one of its values.
  void value(const Message& message, const FieldDescriptor& field, int index) {
    using R = google::protobuf::Reflection;
    const auto& reflection = *message.GetReflection();
    const auto get = [&](auto one, auto repeated) {
      return index < 0 ? (reflection.*one)(message, &field)
                       : (reflection.*repeated)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        out_ += get(&R::GetBool, &R::GetRepeatedBool) ? "true" : "false";
        return;
      case FieldDescriptor::CPPTYPE_INT32:
        absl::StrAppend(&out_, get(&R::GetInt32, &R::GetRepeatedInt32));
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        absl::StrAppend(&out_, get(&R::GetInt64, &R::GetRepeatedInt64));
        return;
      case FieldDescriptor::CPPTYPE_UINT32:
        absl::StrAppend(&out_, get(&R::GetUInt32, &R::GetRepeatedUInt32));
        return;
      case FieldDescriptor::CPPTYPE_UINT64:
        absl::StrAppend(&out_, get(&R::GetUInt64, &R::GetRepeatedUInt64));
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        out_ += number_text(get(&R::GetFloat, &R::GetRepeatedFloat));
        return;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        out_ += number_text(get(&R::GetDouble, &R::GetRepeatedDouble));
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        out_ += quoted(get(&R::GetString, &R::GetRepeatedString));
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        enumerator(field, get(&R::GetEnumValue, &R::GetRepeatedEnumValue));
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        nested(index < 0 ? reflection.GetMessage(message, &field)
                         : reflection.GetRepeatedMessage(message, &field, index));
        return;
    }
  }

  // A server that is newer than we are may know values that have no word here.
  void enumerator(const FieldDescriptor& field, int number) {
    const auto* value = field.enum_type()->FindValueByNumber(number);
    out_ += value == nullptr ? absl::StrCat(number) : quoted(api::queues::word_of(*value));
  }

  void nested(const Message& message) {
    using google::protobuf::Duration;
    using google::protobuf::Timestamp;
    if (message.GetDescriptor() == Duration::descriptor()) {
      const auto& duration = static_cast<const Duration&>(message);
      out_ += number_text(static_cast<double>(duration.seconds()) + duration.nanos() / 1e9);
    } else if (message.GetDescriptor() == Timestamp::descriptor()) {
      const auto& time = static_cast<const Timestamp&>(message);
      out_ += quoted(google::protobuf::util::TimeUtil::ToString(time));
    } else {
      object(message);
    }
  }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void next(int index) {
    if (index > 0) out_ += ',';
    new_line();
  }
  void close(char bracket, int size) {
    --depth_;
    if (size > 0) new_line();
    out_ += bracket;
  }
  void new_line() {
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }

  std::string out_;
  size_t depth_ = 0;
};

}  // namespace

std::string to_json(const Message& message) { return Writer().write(message); }

}  // namespace fairlead::server
