// What happened lately, on its way to the learner's log.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace kubebeast {

// Keeps the newest `capacity` entries until they are taken. Thread-safe; never blocks.
template <typename T>
class Recent {
 public:
  explicit Recent(std::size_t capacity) : capacity_(capacity) {}

  void Add(T entry) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() == capacity_) entries_.pop_front();
    entries_.push_back(std::move(entry));
  }

  // Those since the last call, oldest first.
  std::deque<T> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::deque<T> entries_;
};

}  // namespace kubebeast
