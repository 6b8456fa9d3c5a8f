#include "api/temporal/grpc_port.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

#include <atomic>
#include <cstring>

#include "base/assert.h"

namespace fairlead::api {

namespace {

// A slice that owns a string costs two allocations, a copy costs one and the copying.
constexpr size_t kCopyBytesMax = 2048;

std::string_view view_of(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// A reply that gRPC reads from our memory and frees on whatever thread it has done so. Its
// reference count orders the two; `is_lent` tells the same to sanitizers, which do not see into
// gRPC.
struct LentBody {
  std::string bytes;
  std::atomic<bool> is_lent = false;
};

void give_back(void* lent) {
  auto* body = static_cast<LentBody*>(lent);
  FL_ASSERT(body->is_lent.load(std::memory_order_acquire), "gRPC freed what it was not given");
  delete body;
}

grpc_slice slice_of(std::string body) {
  if (body.size() <= kCopyBytesMax) return grpc_slice_from_copied_buffer(body.data(), body.size());
  auto* lent = new LentBody{std::move(body)};
  lent->is_lent.store(true, std::memory_order_release);
  return grpc_slice_new_with_user_data(lent->bytes.data(), lent->bytes.size(), give_back, lent);
}

}  // namespace

bool GrpcBody::open() {
  grpc_byte_buffer_reader reader;
  if (!grpc_byte_buffer_reader_init(&reader, buffer_)) return false;
  // The usual message is one piece of what was read from the socket, and is used where it lies.
  grpc_slice* first = nullptr;
  if (grpc_byte_buffer_reader_peek(&reader, &first) &&
      GRPC_SLICE_LENGTH(*first) == grpc_byte_buffer_length(buffer_)) {
    view_ = view_of(*first);
    grpc_byte_buffer_reader_destroy(&reader);
    return true;
  }
  grpc_byte_buffer_reader_destroy(&reader);
  if (!grpc_byte_buffer_reader_init(&reader, buffer_)) return false;
  joined_ = grpc_byte_buffer_reader_readall(&reader);
  view_ = view_of(joined_);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(buffer_);
  buffer_ = nullptr;
  return true;
}

void GrpcBody::release() {
  view_ = {};
  grpc_slice_unref(joined_);
  joined_ = grpc_empty_slice();
  if (buffer_ != nullptr) grpc_byte_buffer_destroy(buffer_);
  buffer_ = nullptr;
}

grpc_op& GrpcBatch::add(grpc_op_type type) {
  grpc_op& op = ops_[count_++];
  std::memset(&op, 0, sizeof(op));
  op.op = type;
  return op;
}

void GrpcBatch::send_message(std::string body) {
  grpc_slice slice = slice_of(std::move(body));
  message_ = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  add(GRPC_OP_SEND_MESSAGE).data.send_message.send_message = message_;
}

void GrpcBatch::send_status(const RpcStatus& status) {
  auto& data = add(GRPC_OP_SEND_STATUS_FROM_SERVER).data.send_status_from_server;
  data.status = static_cast<grpc_status_code>(status.code);
  if (!status.message.empty()) {
    status_message_ = grpc_slice_from_static_buffer(status.message.data(), status.message.size());
    data.status_details = &status_message_;
  }
  if (!status.details.empty()) {
    details_.key = grpc_slice_from_static_string("grpc-status-details-bin");
    details_value_ = grpc_slice_from_copied_buffer(status.details.data(), status.details.size());
    details_.value = details_value_;
    data.trailing_metadata = &details_;
    data.trailing_metadata_count = 1;
  }
}

void GrpcBatch::start(grpc_call* call, void* tag) {
  const grpc_call_error error = grpc_call_start_batch(call, ops_, count_, tag, nullptr);
  FL_ASSERT(error == GRPC_CALL_OK, "gRPC refused a batch: our order of operations is wrong");
  // gRPC has taken the message's slices and its own references to the rest.
  if (message_ != nullptr) grpc_byte_buffer_destroy(message_);
  grpc_slice_unref(details_value_);
}

}  // namespace fairlead::api
