// Message of a gRPC call.
#pragma once

#include <grpc/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kubebeast {

// A message's bytes in slices, or no message. gRPC must stay initialized as long as a message lives.
class Message {
 public:
  Message() = default;
  // Takes over the buffer; null is no message.
  explicit Message(grpc_byte_buffer* buffer) : buffer_(buffer) {}
  // Copies the bytes; each piece becomes a slice of its own.
  explicit Message(const std::vector<absl::string_view>& pieces);
  explicit Message(absl::string_view bytes);

  bool has_value() const { return buffer_ != nullptr; }
  grpc_byte_buffer* get() const { return buffer_.get(); }

  // Returns the number of bytes; requires a message.
  std::size_t size() const { return grpc_byte_buffer_length(buffer_.get()); }
  // Returns true if gRPC compressed the message, so that its bytes cannot be read as they are. Compressed messages are
  // never inflated: gRPC would do so without a bound, before it checks the size.
  bool compressed() const { return buffer_->data.raw.compression != GRPC_COMPRESS_NONE; }
  std::string ToString() const;

 private:
  struct Destroy {
    void operator()(grpc_byte_buffer* buffer) const { grpc_byte_buffer_destroy(buffer); }
  };
  std::unique_ptr<grpc_byte_buffer, Destroy> buffer_;
};

}  // namespace kubebeast
