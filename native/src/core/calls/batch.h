// Batch of operations of a gRPC call.
#pragma once

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "calls/message.h"
#include "calls/poller.h"

namespace kubebeast {

// Operations that begin together. Their event comes when all are done, and is not ok if one has failed. Objects that
// the operations refer to must live until then. A call may have one operation of each kind under way at a time, and two
// threads must not begin batches of the same call at the same time.
class Batch {
 public:
  Batch() = default;
  ~Batch() { grpc_slice_unref(details_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Batch& SendInitialMetadata(grpc_metadata* metadata = nullptr, std::size_t count = 0);
  Batch& ReceiveInitialMetadata(grpc_metadata_array* metadata);
  Batch& Send(const Message& message);
  // Receives a message, which the caller takes over; null at the end of the peer's messages.
  Batch& Receive(grpc_byte_buffer** message);
  // Ends the messages of this side; for the side that dialed.
  Batch& HalfClose();
  // Ends the call; for the other side.
  Batch& SendStatus(const absl::Status& status);
  // Sets `cancelled` if the call ends before its status is delivered; for the side that did not dial.
  Batch& ReceiveClose(int* cancelled);
  Batch& ReceiveStatus(grpc_metadata_array* metadata, grpc_status_code* code, grpc_slice* details);

  void Begin(grpc_call* call, Poller::Event& event);

 private:
  grpc_op& Add(grpc_op_type type);

  std::array<grpc_op, 4> operations_;
  std::size_t size_ = 0;
  grpc_slice details_ = grpc_empty_slice();  // of the status
};

}  // namespace kubebeast
