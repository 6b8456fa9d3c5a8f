#include "api/temporal/reflection_protos.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/assert.h"

namespace fairlead::api {

namespace {

// As published in grpc-proto, in short: names and numbers are on the wire and do not change.
constexpr char kHealth[] = R"(
  name: "grpc/health/v1/health.proto" package: "grpc.health.v1" syntax: "proto3"
  message_type { name: "HealthCheckRequest"
    field { name: "service" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } }
  message_type { name: "HealthCheckResponse"
    field { name: "status" number: 1 label: LABEL_OPTIONAL type: TYPE_ENUM
            type_name: ".grpc.health.v1.HealthCheckResponse.ServingStatus" }
    enum_type { name: "ServingStatus"
      value { name: "UNKNOWN" number: 0 } value { name: "SERVING" number: 1 }
      value { name: "NOT_SERVING" number: 2 } value { name: "SERVICE_UNKNOWN" number: 3 } } }
  service { name: "Health"
    method { name: "Check" input_type: ".grpc.health.v1.HealthCheckRequest"
             output_type: ".grpc.health.v1.HealthCheckResponse" }
    method { name: "Watch" input_type: ".grpc.health.v1.HealthCheckRequest"
             output_type: ".grpc.health.v1.HealthCheckResponse" server_streaming: true } }
)";

// $V stands for the version.
constexpr char kReflection[] = R"(
  name: "grpc/reflection/$V/reflection.proto" package: "grpc.reflection.$V" syntax: "proto3"
  message_type { name: "ServerReflectionRequest"
    field { name: "host" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "file_by_filename" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    field { name: "file_containing_symbol" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING
            oneof_index: 0 }
    field { name: "file_containing_extension" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ExtensionRequest" oneof_index: 0 }
    field { name: "all_extension_numbers_of_type" number: 6 label: LABEL_OPTIONAL type: TYPE_STRING
            oneof_index: 0 }
    field { name: "list_services" number: 7 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    oneof_decl { name: "message_request" } }
  message_type { name: "ExtensionRequest"
    field { name: "containing_type" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "extension_number" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 } }
  message_type { name: "ServerReflectionResponse"
    field { name: "valid_host" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "original_request" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ServerReflectionRequest" }
    field { name: "file_descriptor_response" number: 4 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.FileDescriptorResponse" oneof_index: 0 }
    field { name: "all_extension_numbers_response" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ExtensionNumberResponse" oneof_index: 0 }
    field { name: "list_services_response" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ListServiceResponse" oneof_index: 0 }
    field { name: "error_response" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ErrorResponse" oneof_index: 0 }
    oneof_decl { name: "message_response" } }
  message_type { name: "FileDescriptorResponse"
    field { name: "file_descriptor_proto" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
  message_type { name: "ExtensionNumberResponse"
    field { name: "base_type_name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "extension_number" number: 2 label: LABEL_REPEATED type: TYPE_INT32 } }
  message_type { name: "ListServiceResponse"
    field { name: "service" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE
            type_name: ".grpc.reflection.$V.ServiceResponse" } }
  message_type { name: "ServiceResponse"
    field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } }
  message_type { name: "ErrorResponse"
    field { name: "error_code" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
    field { name: "error_message" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
  service { name: "ServerReflection"
    method { name: "ServerReflectionInfo"
             input_type: ".grpc.reflection.$V.ServerReflectionRequest"
             output_type: ".grpc.reflection.$V.ServerReflectionResponse"
             client_streaming: true server_streaming: true } }
)";

void build(const std::string& text, google::protobuf::DescriptorPool* pool) {
  google::protobuf::FileDescriptorProto file;
  FL_ASSERT(google::protobuf::TextFormat::ParseFromString(text, &file),
            "the text of a descriptor does not parse");
  FL_ASSERT(pool->BuildFile(file) != nullptr, "a descriptor does not build");
}

}  // namespace

const google::protobuf::DescriptorPool& own_descriptors() {
  static const google::protobuf::DescriptorPool* pool = [] {
    auto* made = new google::protobuf::DescriptorPool;
    build(kHealth, made);
    for (const char* version : {"v1", "v1alpha"}) {
      build(absl::StrReplaceAll(kReflection, {{"$V", version}}), made);
    }
    return made;
  }();
  return *pool;
}

}  // namespace fairlead::api
