#include "calls/message_reader.h"

#include <grpc/slice.h>

#include <utility>

namespace kubebeast {

bool MessageReader::Next(const void** data, int* size) {
  if (num_backed_up_ > 0) {
    *size = std::exchange(num_backed_up_, 0);
    *data = GRPC_SLICE_END_PTR(*slice_) - *size;
    return true;
  }
  if (grpc_byte_buffer_reader_peek(&reader_, &slice_) == 0) return false;
  *data = GRPC_SLICE_START_PTR(*slice_);
  *size = static_cast<int>(GRPC_SLICE_LENGTH(*slice_));
  num_bytes_ += *size;
  return true;
}

void MessageReader::BackUp(int count) { num_backed_up_ = count; }

bool MessageReader::Skip(int count) {
  const void* data = nullptr;
  int size = 0;
  for (; Next(&data, &size); count -= size) {
    if (size < count) continue;
    BackUp(size - count);
    return true;
  }
  return false;
}

}  // namespace kubebeast
