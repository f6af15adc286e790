// One message of gRPC.
#pragma once

#include <grpc/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kubebeast {

// Bytes in slices, or nothing. gRPC is initialised as long as a message lives.
class Message {
 public:
  Message() = default;
  // Takes the buffer over; null: no message.
  explicit Message(grpc_byte_buffer* buffer) : buffer_(buffer) {}
  // Copies, each piece into a slice of its own.
  explicit Message(const std::vector<absl::string_view>& pieces);
  explicit Message(absl::string_view bytes);

  bool has_value() const { return buffer_ != nullptr; }
  grpc_byte_buffer* get() const { return buffer_.get(); }

  // Those of an actual message only.
  std::size_t size() const { return grpc_byte_buffer_length(buffer_.get()); }
  // Whether gRPC compressed the message, so that its bytes mean nothing as they are. They are never inflated: gRPC
  // would do so without a bound, before it looks at the size.
  bool compressed() const { return buffer_->data.raw.compression != GRPC_COMPRESS_NONE; }
  std::string ToString() const;

 private:
  struct Destroy {
    void operator()(grpc_byte_buffer* buffer) const { grpc_byte_buffer_destroy(buffer); }
  };
  std::unique_ptr<grpc_byte_buffer, Destroy> buffer_;
};

}  // namespace kubebeast
