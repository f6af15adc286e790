// Reader of a received message, piece by piece.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

namespace kubebeast::client {

// A reader of one message, which must outlive it.
class ByteBufferReader final : public grpc::ProtoBufferReader {
 public:
  explicit ByteBufferReader(grpc::ByteBuffer* message) : grpc::ProtoBufferReader(message) {}

  // Returns true if gRPC compressed the message, so that its bytes are meaningless as they are. They are never
  // inflated: gRPC would do so without a bound, before it checks the size.
  bool compressed() { return reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE; }
};

}  // namespace kubebeast::client
