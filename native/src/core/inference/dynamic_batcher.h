// Waiting steps of many producers → one batch.
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

// When a batch is given out, and how large it may be.
struct BatchingOptions {
  std::size_t min_rows = 1;
  std::size_t max_rows = 256;
  std::chrono::milliseconds timeout{10};
};

// Why a batch was given out: min_rows waited, every member waited, or the oldest item had waited for the timeout.
enum class FlushReason { kReady, kAll, kTimeout };

// Batches items of `rows` rows each. A producer joins when it may send, has at most one item waiting, and leaves when
// it cannot send any more: membership is never fixed, and a batch waits for no one who has left. Thread-safe; any
// number of producers and consumers.
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

  // Takes the producer out, and its waiting item. Harmless for one who is not a member.
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

  // Adds a member's item. Never blocks; dropped after Close.
  void Push(Producer producer, std::size_t rows, T item) {
    const MutexLock lock(mutex_);
    if (closed_) return;
    waiting_.push_back({producer, rows, Clock::now() + options_.timeout, std::move(item)});
    num_rows_ += rows;
    // The first item starts the clock of whoever waits.
    if (waiting_.size() == 1 || num_rows_ >= options_.min_rows || AllWait()) released_.NotifyAll();
  }

  // Waits for a batch: whole items, oldest first, up to max_rows (more only when one item alone has more).
  // DeadlineExceeded when none was due by the deadline; Cancelled after Close.
  absl::StatusOr<Batch> Pop(Clock::time_point deadline) {
    const MutexLock lock(mutex_);
    for (;;) {
      if (closed_) return absl::CancelledError("closed");
      const Clock::time_point now = Clock::now();
      if (!waiting_.empty()) {
        if (num_rows_ >= options_.min_rows) return Take(FlushReason::kReady);
        if (AllWait()) return Take(FlushReason::kAll);
        if (now >= waiting_.front().due) return Take(FlushReason::kTimeout);
      }
      if (now >= deadline) return absl::DeadlineExceededError("no rows to act on");
      // A copy: the wait reads it while others change the queue.
      const Clock::time_point until = waiting_.empty() ? deadline : std::min(deadline, waiting_.front().due);
      released_.WaitUntil(mutex_, until);
    }
  }

  // Wakes every waiter and drops what waits. Idempotent.
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

  bool AllWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !waiting_.empty() && waiting_.size() >= members_.size();
  }

  Batch Take(FlushReason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Batch batch;
    batch.reason = reason;
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
};

}  // namespace kubebeast
