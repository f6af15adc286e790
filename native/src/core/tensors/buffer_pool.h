// Pool of reusable memory for large arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sync/mutex.h"
#include "tensors/array.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// Allocator of Arrays that keeps a few large buffers for reuse: fresh pages cost more than the copy into them.
// Thread-safe. Arrays may outlive the pool.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Smaller buffers are left to malloc.
  static constexpr std::size_t kMinRecycledBytes = std::size_t{256} << 10;
  static constexpr std::size_t kMaxFreeBuffers = 8;

  // Returns an uninitialized array.
  Array Allocate(DType dtype, std::vector<std::int64_t> shape);

  std::size_t num_free() const;

 private:
  struct Buffer {
    std::unique_ptr<std::uint8_t[]> data;
    std::size_t capacity = 0;
  };

  // Returns the smallest kept buffer of `bytes` to 2 * `bytes`, the newest of equal ones, or a new buffer.
  Buffer Take(std::size_t bytes);
  void Release(Buffer buffer);

  mutable Mutex mutex_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace kubebeast
