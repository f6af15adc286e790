// Dynamic batching of the waiting steps of many producers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sync/mutex.h"

namespace kubebeast {

// Conditions and size limit of a batch.
struct BatchingOptions {
  std::size_t min_rows = 1;
  std::size_t max_rows = 256;
  std::chrono::milliseconds timeout{10};
};

// Reason for a batch: min_rows waited, every member waited, or the oldest item had waited for the timeout.
enum class FlushReason { kReady, kAll, kTimeout };

// A batcher of items with `rows` rows each. A producer joins when it may send, has at most one item waiting, and leaves
// when it can send no more: members may change at any time, and no batch waits for a producer that has left.
// Thread-safe, for any number of producers and consumers; only Pop blocks.
template <typename T>
class DynamicBatcher {
 public:
  using Producer = const void*;

  struct Batch {
    std::vector<T> items;  // oldest first
    std::size_t num_rows = 0;
    FlushReason reason = FlushReason::kReady;
  };

  explicit DynamicBatcher(BatchingOptions options) : options_(options) {}

  void Join(Producer producer) {
    const MutexLock lock(mutex_);
    members_.insert(producer);
  }

  // Removes the producer and its waiting item. Does nothing if it is not a member.
  void Leave(Producer producer) {
    std::deque<Entry> dropped;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    members_.erase(producer);
    const auto entry = std::ranges::find(waiting_, producer, &Entry::producer);
    if (entry != waiting_.end()) {
      num_rows_ -= entry->rows;
      dropped.push_back(std::move(*entry));
      waiting_.erase(entry);
    }
    if (AllWait()) released_.NotifyAll();
  }

  // Adds a member's item, or drops it after Close. Never blocks.
  void Push(Producer producer, std::size_t rows, T item) {
    const Clock::time_point due = Clock::now() + options_.timeout;
    bool wakes = false;
    {
      const MutexLock lock(mutex_);
      if (closed_) return;
      waiting_.push_back({producer, rows, due, std::move(item)});
      num_rows_ += rows;
      wakes = num_rows_ >= options_.min_rows || AllWait() || due < next_look_;
    }
    // Notifies without the lock, so that a woken thread can take it.
    if (wakes) released_.NotifyAll();
  }

  // Blocks until a batch is due: whole items, oldest first, up to max_rows (more only if a single item has more).
  // Returns DeadlineExceeded if none was due by the deadline; Cancelled after Close.
  absl::StatusOr<Batch> Pop(Clock::time_point deadline) {
    const MutexLock lock(mutex_);
    bool looked = false;
    for (;;) {
      if (closed_) return absl::CancelledError("closed");
      const Clock::time_point now = Clock::now();
      if (!waiting_.empty()) {
        if (num_rows_ >= options_.min_rows) return Take(FlushReason::kReady);
        if (AllWait()) return Take(FlushReason::kAll);
        if (now >= waiting_.front().due) return Take(FlushReason::kTimeout);
      }
      if (now >= deadline) {
        // Leaves the items to the other waiting threads.
        if (!waiting_.empty()) released_.NotifyAll();
        return absl::DeadlineExceededError("no rows to act on");
      }
      WaitUntil(std::min(deadline, NextLook(now, std::exchange(looked, true))));
    }
  }

  // Wakes every waiting thread and drops the waiting items. Idempotent.
  void Close() {
    std::deque<Entry> dropped;
    const MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
    num_rows_ = 0;
    released_.NotifyAll();
  }

  std::size_t rows_waiting() const {
    const MutexLock lock(mutex_);
    return num_rows_;
  }

 private:
  struct Entry {
    Producer producer;
    std::size_t rows;
    Clock::time_point due;
    T item;
  };

  // Returns the due time of the oldest item. If there is none, a thread looks again after one timeout, before any item
  // can be due, and then waits for a notification: in a busy fleet the first item of a batch then wakes no thread.
  Clock::time_point NextLook(Clock::time_point now, bool looked) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!waiting_.empty()) return waiting_.front().due;
    return looked ? Clock::time_point::max() : now + options_.timeout;
  }

  void WaitUntil(Clock::time_point until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    next_look_ = until;
    released_.WaitUntil(mutex_, until);
    next_look_ = Clock::time_point::max();
  }

  bool AllWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !waiting_.empty() && waiting_.size() >= members_.size();
  }

  Batch Take(FlushReason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Batch batch;
    batch.reason = reason;
    batch.items.reserve(std::min(waiting_.size(), options_.max_rows));
    while (!waiting_.empty() && (batch.items.empty() || batch.num_rows + waiting_.front().rows <= options_.max_rows)) {
      batch.num_rows += waiting_.front().rows;
      batch.items.push_back(std::move(waiting_.front().item));
      waiting_.pop_front();
    }
    num_rows_ -= batch.num_rows;
    return batch;
  }

  const BatchingOptions options_;
  mutable Mutex mutex_;
  CondVar released_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_set<Producer> members_ ABSL_GUARDED_BY(mutex_);
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::size_t num_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  // Next look of one waiting thread: items that are due later wake no thread by their time. max() after any wake-up.
  Clock::time_point next_look_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
};

}  // namespace kubebeast
