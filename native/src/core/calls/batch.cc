#include "calls/batch.h"

#include <grpc/slice.h>

#include <cstdlib>

namespace kubebeast {

grpc_op& Batch::Add(grpc_op_type type) {
  grpc_op& operation = operations_.at(size_++);
  operation = {};
  operation.op = type;
  return operation;
}

Batch& Batch::SendInitialMetadata(grpc_metadata* metadata, std::size_t count) {
  auto& data = Add(GRPC_OP_SEND_INITIAL_METADATA).data.send_initial_metadata;
  data.metadata = metadata;
  data.count = count;
  return *this;
}

Batch& Batch::ReceiveInitialMetadata(grpc_metadata_array* metadata) {
  Add(GRPC_OP_RECV_INITIAL_METADATA).data.recv_initial_metadata.recv_initial_metadata = metadata;
  return *this;
}

Batch& Batch::Send(const Message& message) {
  Add(GRPC_OP_SEND_MESSAGE).data.send_message.send_message = message.get();
  return *this;
}

Batch& Batch::Receive(grpc_byte_buffer** message) {
  Add(GRPC_OP_RECV_MESSAGE).data.recv_message.recv_message = message;
  return *this;
}

Batch& Batch::HalfClose() {
  Add(GRPC_OP_SEND_CLOSE_FROM_CLIENT);
  return *this;
}

Batch& Batch::SendStatus(const absl::Status& status) {
  auto& data = Add(GRPC_OP_SEND_STATUS_FROM_SERVER).data.send_status_from_server;
  data.status = static_cast<grpc_status_code>(status.code());
  if (!status.message().empty()) {
    details_ = grpc_slice_from_copied_buffer(status.message().data(), status.message().size());
    data.status_details = &details_;
  }
  return *this;
}

Batch& Batch::ReceiveClose(int* cancelled) {
  Add(GRPC_OP_RECV_CLOSE_ON_SERVER).data.recv_close_on_server.cancelled = cancelled;
  return *this;
}

Batch& Batch::ReceiveStatus(grpc_metadata_array* metadata, grpc_status_code* code, grpc_slice* details) {
  auto& data = Add(GRPC_OP_RECV_STATUS_ON_CLIENT).data.recv_status_on_client;
  data.trailing_metadata = metadata;
  data.status = code;
  data.status_details = details;
  return *this;
}

void Batch::Begin(grpc_call* call, Poller::Event& event) {
  const grpc_call_error error =
      grpc_call_start_batch(call, operations_.data(), size_, event.MakeTag(), /*reserved=*/nullptr);
  // Only an invalid batch, a bug, fails here; its event would never come.
  if (error != GRPC_CALL_OK) std::abort();
}

}  // namespace kubebeast
