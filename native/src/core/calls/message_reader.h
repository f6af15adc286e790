// Reader of a received message, slice by slice.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>
#include <grpc/byte_buffer_reader.h>

#include <cstdint>

#include "calls/message.h"

namespace kubebeast {

// A protobuf input stream over a message, which must outlive it and must not be compressed.
class MessageReader final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit MessageReader(const Message& message) { grpc_byte_buffer_reader_init(&reader_, message.get()); }
  ~MessageReader() override { grpc_byte_buffer_reader_destroy(&reader_); }
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  std::int64_t ByteCount() const override { return num_bytes_ - num_backed_up_; }

 private:
  grpc_byte_buffer_reader reader_;
  grpc_slice* slice_ = nullptr;  // the newest one
  std::int64_t num_bytes_ = 0;   // of the slices so far
  int num_backed_up_ = 0;        // at the end of the newest one
};

}  // namespace kubebeast
