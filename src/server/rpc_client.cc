#include "server/rpc_client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <vector>

namespace fairlead::server {

struct RpcClient::Connection {
  explicit Connection(const std::string& address) : stub(open(address)) {}
  ~Connection() {
    queue.Shutdown();
    void* tag = nullptr;
    bool is_fine = false;
    while (queue.Next(&tag, &is_fine)) {
    }
  }

  static std::shared_ptr<grpc::Channel> open(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  grpc::GenericStub stub;
  grpc::CompletionQueue queue;
};

RpcClient::RpcClient(const std::string& address, DurationNs timeout)
    : connection_(std::make_unique<Connection>(address)), timeout_(timeout) {}

RpcClient::~RpcClient() = default;

absl::StatusOr<std::string> RpcClient::call(const std::string& method, const std::string& body) {
  grpc::ClientContext context;
  // gRPC counts a span from the moment of the call.
  context.set_deadline(gpr_time_from_nanos(timeout_, GPR_TIMESPAN));
  const grpc::Slice slice(body);
  auto reader = connection_->stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1),
                                                   &connection_->queue);
  reader->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool is_fine = false;
  connection_->queue.Next(&tag, &is_fine);
  // The codes have the same numbers on both sides.
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  std::vector<grpc::Slice> slices;
  if (const auto dumped = reply.Dump(&slices); !dumped.ok()) {
    return absl::InternalError(dumped.error_message());
  }
  std::string bytes;
  for (const auto& part : slices) {
    bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  return bytes;
}

}  // namespace fairlead::server
