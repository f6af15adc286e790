#include "tensors/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace kubebeast {

Array BufferPool::Allocate(DType dtype, std::vector<std::int64_t> shape) {
  std::size_t bytes = ItemSize(dtype);
  for (const std::int64_t dim : shape) bytes *= static_cast<std::size_t>(dim);
  if (bytes < kMinRecycledBytes) {
    return {dtype, std::move(shape), std::make_shared_for_overwrite<std::uint8_t[]>(bytes)};
  }
  Buffer buffer = Take(bytes);
  std::uint8_t* const data = buffer.data.release();
  const auto release = [pool = weak_from_this(), capacity = buffer.capacity](std::uint8_t* owned) {
    Buffer returned{std::unique_ptr<std::uint8_t[]>(owned), capacity};
    if (const auto alive = pool.lock()) alive->Release(std::move(returned));
  };
  return {dtype, std::move(shape), std::shared_ptr<std::uint8_t[]>(data, release)};
}

std::size_t BufferPool::num_free() const {
  const MutexLock lock(mutex_);
  return free_.size();
}

BufferPool::Buffer BufferPool::Take(std::size_t bytes) {
  {
    const MutexLock lock(mutex_);
    // The smallest that fits, to spare the larger ones; of equal ones the newest, which may still be in a cache.
    auto best = free_.end();
    for (auto each = free_.begin(); each != free_.end(); ++each) {
      const bool fits = each->capacity >= bytes && each->capacity / 2 <= bytes;
      if (fits && (best == free_.end() || each->capacity <= best->capacity)) best = each;
    }
    if (best != free_.end()) {
      Buffer buffer = std::move(*best);
      free_.erase(best);
      return buffer;
    }
  }
  return {std::make_unique_for_overwrite<std::uint8_t[]>(bytes), bytes};
}

void BufferPool::Release(Buffer buffer) {
  Buffer dropped;  // freed after the lock is released
  const MutexLock lock(mutex_);
  if (free_.size() == kMaxFreeBuffers) {
    dropped = std::move(free_.front());
    free_.erase(free_.begin());
  }
  free_.push_back(std::move(buffer));
}

}  // namespace kubebeast
