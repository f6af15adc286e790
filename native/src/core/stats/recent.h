// Buffer of recent events, for the learner's log.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "sync/mutex.h"

namespace kubebeast {

// A queue that drops its oldest entry if it holds `capacity` entries. Thread-safe; never blocks.
template <typename T>
class Recent {
 public:
  explicit Recent(std::size_t capacity) : capacity_(capacity) {}

  void Add(T entry) {
    const MutexLock lock(mutex_);
    if (entries_.size() == capacity_) entries_.pop_front();
    entries_.push_back(std::move(entry));
  }

  // Returns the entries since the last call, oldest first.
  std::deque<T> Take() {
    const MutexLock lock(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  const std::size_t capacity_;
  Mutex mutex_;
  std::deque<T> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
