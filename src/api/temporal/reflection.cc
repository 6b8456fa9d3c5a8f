#include "api/temporal/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/status.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/temporal/reflection_protos.h"
#include "base/wire.h"

namespace fairlead::api {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// Field numbers of ServerReflectionRequest and ServerReflectionResponse. On the wire: do not
// change.
enum RequestField : uint32_t {
  kHost = 1,
  kFileByFilename = 3,
  kFileContainingSymbol = 4,
  kFileContainingExtension = 5,
  kAllExtensionNumbers = 6,
  kListServices = 7,
};
enum ResponseField : uint32_t {
  kValidHost = 1,
  kOriginalRequest = 2,
  kFileDescriptors = 4,
  kExtensionNumbers = 5,
  kServiceList = 6,
  kError = 7,
};

// Asks the API's descriptors first, then those of health and reflection.
template <typename Find>
auto find_in_pools(Find&& find) {
  const auto found = find(*DescriptorPool::generated_pool());
  return found != nullptr ? found : find(own_descriptors());
}

void write_error(int code, std::string_view message, wire::Writer* out) {
  out->message(kError, [&](wire::Writer& error) {
    error.integer(1, code);
    error.string(2, message);
  });
}

// A file and everything it stands on: clients cannot build one without the other.
void write_file(const FileDescriptor* file, std::set<const FileDescriptor*>* written,
                wire::Writer* out) {
  if (!written->insert(file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  out->bytes(1, proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) {
    write_file(file->dependency(i), written, out);
  }
}

void write_file_or_error(const FileDescriptor* file, std::string_view missing, wire::Writer* out) {
  if (file == nullptr) return write_error(GRPC_STATUS_NOT_FOUND, missing, out);
  out->message(kFileDescriptors, [&](wire::Writer& files) {
    std::set<const FileDescriptor*> written;
    write_file(file, &written, &files);
  });
}

void write_extension_file(std::string_view request, wire::Writer* out) {
  std::string type;
  int number = 0;
  wire::Reader reader(request);
  while (reader.next()) {
    if (reader.field() == 1) type = reader.bytes();
    if (reader.field() == 2) number = static_cast<int>(reader.number());
  }
  const FileDescriptor* file = find_in_pools([&](const DescriptorPool& pool) {
    const Descriptor* message = pool.FindMessageTypeByName(type);
    const FieldDescriptor* extension =
        message == nullptr ? nullptr : pool.FindExtensionByNumber(message, number);
    return extension == nullptr ? nullptr : extension->file();
  });
  write_file_or_error(file, absl::StrCat("extension not found: ", number, " of ", type), out);
}

void write_extension_numbers(const std::string& type, wire::Writer* out) {
  const Descriptor* message =
      find_in_pools([&](const DescriptorPool& pool) { return pool.FindMessageTypeByName(type); });
  if (message == nullptr) {
    return write_error(GRPC_STATUS_NOT_FOUND, absl::StrCat("type not found: ", type), out);
  }
  std::vector<const FieldDescriptor*> extensions;
  message->file()->pool()->FindAllExtensions(message, &extensions);
  out->message(kExtensionNumbers, [&](wire::Writer& numbers) {
    numbers.string(1, type);
    for (const FieldDescriptor* extension : extensions) numbers.integer(2, extension->number());
  });
}

void write_services(const std::vector<std::string>& services, wire::Writer* out) {
  out->message(kServiceList, [&](wire::Writer& list) {
    for (const std::string& service : services) {
      list.message(1, [&](wire::Writer& entry) { entry.string(1, service); });
    }
  });
}

class ReflectionSession final : public StreamSession {
 public:
  ReflectionSession(const std::vector<std::string>& services, std::shared_ptr<Stream> stream)
      : services_(services), stream_(std::move(stream)) {}

  void on_message(std::string_view message) override {
    stream_->send(answer_reflection(message, services_));
  }
  void on_half_close() override { stream_->finish({}); }

 private:
  const std::vector<std::string>& services_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace

std::string answer_reflection(std::string_view request, const std::vector<std::string>& services) {
  std::string host;
  uint32_t question = 0;
  std::string value;
  wire::Reader reader(request);
  while (reader.next()) {
    if (reader.field() == kHost) {
      host = reader.bytes();
    } else {
      question = reader.field();
      value = reader.bytes();
    }
  }

  std::string out;
  wire::Writer writer(&out);
  writer.string(kValidHost, host);
  writer.bytes(kOriginalRequest, reader.ok() ? request : std::string_view());
  switch (reader.ok() ? question : 0) {
    case kFileByFilename:
      write_file_or_error(
          find_in_pools([&](const DescriptorPool& pool) { return pool.FindFileByName(value); }),
          absl::StrCat("file not found: ", value), &writer);
      break;
    case kFileContainingSymbol:
      write_file_or_error(find_in_pools([&](const DescriptorPool& pool) {
                            return pool.FindFileContainingSymbol(value);
                          }),
                          absl::StrCat("symbol not found: ", value), &writer);
      break;
    case kFileContainingExtension:
      write_extension_file(value, &writer);
      break;
    case kAllExtensionNumbers:
      write_extension_numbers(value, &writer);
      break;
    case kListServices:
      write_services(services, &writer);
      break;
    default:
      write_error(GRPC_STATUS_INVALID_ARGUMENT, "not a ServerReflectionRequest", &writer);
  }
  return out;
}

void add_reflection(std::vector<std::string> services, StreamTable* streams) {
  for (const char* own : {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                          "grpc.reflection.v1alpha.ServerReflection"}) {
    services.emplace_back(own);
  }
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(services));
  const StreamHandler handler = [shared](std::shared_ptr<Stream> stream) {
    return std::make_unique<ReflectionSession>(*shared, std::move(stream));
  };
  streams->add("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", handler);
  streams->add("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", handler);
}

}  // namespace fairlead::api
