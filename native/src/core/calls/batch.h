// Operations of a call that begin together.
#pragma once

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "calls/message.h"
#include "calls/poller.h"

namespace kubebeast {

// Its event comes when all operations are done, and is not ok where one has failed. What the operations refer to must
// live until then. Of a call one operation of a kind may be under way at a time, and batches of a call must not begin
// at the same time in two threads.
class Batch {
 public:
  Batch() = default;
  ~Batch() { grpc_slice_unref(details_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Batch& SendInitialMetadata(grpc_metadata* metadata = nullptr, std::size_t count = 0);
  Batch& ReceiveInitialMetadata(grpc_metadata_array* metadata);
  Batch& Send(const Message& message);
  // Null at the end of what the peer sends; to be taken over.
  Batch& Receive(grpc_byte_buffer** message);
  // Of the side that dialled: nothing more is sent.
  Batch& HalfClose();
  // Of the other side: the end of the call.
  Batch& SendStatus(const absl::Status& status);
  // Whether the call ended without its status having come through.
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
