#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

// For tests: API messages written as text, and bytes compared with them.
namespace fairlead::api {

template <typename Message>
Message from_text(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) {
    ADD_FAILURE() << "not a " << message.GetDescriptor()->full_name() << ": " << text;
  }
  return message;
}

// The bytes a client would send for such a message.
template <typename Message>
std::string bytes_of(const std::string& text) {
  return from_text<Message>(text).SerializeAsString();
}

// Whether the message or anything inside it holds a field that the API does not define: the mark of
// a wrong field number or wire type.
inline bool has_unknown_fields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty()) return true;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (has_unknown_fields(reflection->GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      if (has_unknown_fields(reflection->GetRepeatedMessage(message, field, i))) return true;
    }
  }
  return false;
}

template <typename Message>
Message parse(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes)) << "malformed " << message.GetDescriptor()->name();
  EXPECT_FALSE(has_unknown_fields(message)) << message.DebugString();
  return message;
}

// Presence counts: an empty message that is there differs from one that is not.
inline void expect_same(const google::protobuf::Message& actual,
                        const google::protobuf::Message& expected) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, actual)) << difference;
}

}  // namespace fairlead::api
