#include "calls/message.h"

#include <grpc/slice.h>

#include "calls/message_reader.h"

namespace kubebeast {

Message::Message(absl::string_view bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer(bytes.data(), bytes.size());
  buffer_.reset(grpc_raw_byte_buffer_create(&slice, 1));
  grpc_slice_unref(slice);
}

Message::Message(const std::vector<absl::string_view>& pieces) {
  std::vector<grpc_slice> slices;
  slices.reserve(pieces.size());
  for (const absl::string_view piece : pieces) {
    slices.push_back(grpc_slice_from_copied_buffer(piece.data(), piece.size()));
  }
  buffer_.reset(grpc_raw_byte_buffer_create(slices.data(), slices.size()));
  for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
}

std::string Message::ToString() const {
  MessageReader reader(*this);
  std::string bytes;
  const void* piece = nullptr;
  int size = 0;
  while (reader.Next(&piece, &size)) bytes.append(static_cast<const char*>(piece), static_cast<std::size_t>(size));
  return bytes;
}

}  // namespace kubebeast
