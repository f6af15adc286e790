// What a stream needs of gRPC, whoever dialled.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace kubebeast {

// One call. Its events go to an ActorStream: OnReadDone, OnWriteDone and in the end OnDone, after which the transport
// is gone. One read and one write at a time; none of the methods blocks or calls back.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void Read(grpc::ByteBuffer* message) = 0;
  virtual void Write(const grpc::ByteBuffer* message) = 0;
  // Tells the peer that the stream is over, and why; what it still sends is not read. Once; no Read or Write follows.
  virtual void Finish(const absl::Status& status) = 0;
  // Cuts the call off, for a peer that does not take its status.
  virtual void Cancel() = 0;
};

}  // namespace kubebeast
