// A queue that holds its producers back without blocking their threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sync/mutex.h"

namespace kubebeast {

// A first-in-first-out queue whose producers run in transport threads, which must never block. A producer asks with
// Park() before it starts new work: at or above `capacity` it leaves a continuation, which runs in the thread whose Pop
// makes room. Work that was started is always accepted, so the queue holds at most capacity items and what the
// producers had under way. Thread-safe; no callback runs with the queue locked.
template <typename T>
class BoundedQueue {
 public:
  // Names a parked producer; never 0.
  using Ticket = std::uint64_t;

  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // Takes the items, also beyond capacity. False and untouched after Close. Never blocks.
  [[nodiscard]] bool Push(std::vector<T>& items) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    std::move(items.begin(), items.end(), std::back_inserter(items_));
    items.clear();
    changed_.NotifyAll();
    return true;
  }

  // nullopt when there is room (or the queue is closed). Otherwise keeps `resume`, which runs once when there is room,
  // in the order of parking; Close drops it. Never blocks.
  [[nodiscard]] std::optional<Ticket> Park(std::function<void()> resume) {
    const MutexLock lock(mutex_);
    if (closed_ || items_.size() < capacity_) return std::nullopt;
    parked_.emplace(++last_ticket_, std::move(resume));
    return last_ticket_;
  }

  // Forgets a parked producer; it may have been resumed already, or be resumed at this moment.
  void Cancel(Ticket ticket) {
    const MutexLock lock(mutex_);
    parked_.erase(ticket);
  }

  // Waits for `count` items and takes the oldest. Those for which unwanted(item) holds do not count: they are moved to
  // `removed`. DeadlineExceeded, taking none but these, when there are fewer at the deadline; Cancelled after Close.
  template <typename Unwanted>
  absl::StatusOr<std::vector<T>> Pop(std::size_t count, Clock::time_point deadline, Unwanted unwanted,
                                     std::vector<T>& removed) {
    for (;;) {
      std::vector<T> popped;
      std::map<Ticket, std::function<void()>> resumed;
      bool in_time = true;
      {
        const MutexLock lock(mutex_);
        while (in_time && !closed_ && items_.size() < count) in_time = changed_.WaitUntil(mutex_, deadline);
        if (closed_) return absl::CancelledError("closed");
        Take(std::stable_partition(items_.begin(), items_.end(), std::not_fn(unwanted)), items_.end(), removed);
        if (items_.size() >= count) Take(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count), popped);
        if (items_.size() < capacity_) resumed.swap(parked_);
      }
      for (const auto& [ticket, resume] : resumed) resume();
      if (!popped.empty()) return popped;
      if (!in_time) return absl::DeadlineExceededError("too few items");
    }
  }

  // Wakes every waiter, refuses further items and returns those that nobody took. Idempotent.
  std::vector<T> Close() {
    std::map<Ticket, std::function<void()>> dropped;
    std::vector<T> left;
    const MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(parked_);
    left.assign(std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end()));
    items_.clear();
    changed_.NotifyAll();
    return left;
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

  std::size_t num_parked() const {
    const MutexLock lock(mutex_);
    return parked_.size();
  }

 private:
  using Iterator = typename std::deque<T>::iterator;

  void Take(Iterator begin, Iterator end, std::vector<T>& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    taken.insert(taken.end(), std::make_move_iterator(begin), std::make_move_iterator(end));
    items_.erase(begin, end);
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  std::map<Ticket, std::function<void()>> parked_ ABSL_GUARDED_BY(mutex_);  // in order of parking
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kubebeast
