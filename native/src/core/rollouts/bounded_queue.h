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
#include "rollouts/fair_shares.h"
#include "sync/mutex.h"

namespace kubebeast {

// Lanes of items, each first in, first out, of which Pop takes by turns: a lane's share of the items is its weight's.
// Its producers run in transport threads, which must never block. One asks with Park() before it starts new work: where
// its lane holds as many items as `capacity` has for it, it leaves a continuation, which runs in the thread whose Pop
// makes room. Work that was started is always accepted, so a lane holds at most its part of the capacity and what its
// producers had under way; a fast lane holds its own producers back and nobody else's.
//
// A lane takes part while it has producers, or items still: Pop waits for the lane whose turn it is. Without them its
// turns go to the others, and it does not catch up on them later. Thread-safe; no callback runs with the queue locked.
template <typename T>
class BoundedQueue {
 public:
  // Names a parked producer; never 0.
  using Ticket = std::uint64_t;

  // capacity: of all lanes together, at least the `count` of every Pop. weights: positive, one a lane.
  explicit BoundedQueue(std::size_t capacity, std::vector<double> weights = {1.0})
      : capacity_(capacity), shares_(std::move(weights)), lanes_(shares_.num_lanes()) {}

  // A producer of `lane` is there, until Leave. Never blocks.
  void Join(std::size_t lane) {
    const MutexLock lock(mutex_);
    ++lanes_[lane].num_producers;
  }
  void Leave(std::size_t lane) {
    const MutexLock lock(mutex_);
    --lanes_[lane].num_producers;
    changed_.NotifyAll();
  }

  // Takes the items, also beyond capacity. False and untouched after Close. Never blocks.
  [[nodiscard]] bool Push(std::vector<T>& items, std::size_t lane = 0) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    std::move(items.begin(), items.end(), std::back_inserter(lanes_[lane].items));
    items.clear();
    changed_.NotifyAll();
    return true;
  }

  // nullopt when there is room in the lane (or the queue is closed). Otherwise keeps `resume`, which runs once when
  // there is room, in the order of parking; Close drops it. Never blocks.
  [[nodiscard]] std::optional<Ticket> Park(std::function<void()> resume, std::size_t lane = 0) {
    const MutexLock lock(mutex_);
    if (closed_ || HasRoom(lane)) return std::nullopt;
    lanes_[lane].parked.emplace(++last_ticket_, std::move(resume));
    return last_ticket_;
  }

  // Forgets a parked producer; it may have been resumed already, or be resumed at this moment.
  void Cancel(Ticket ticket) {
    const MutexLock lock(mutex_);
    for (Lane& lane : lanes_) lane.parked.erase(ticket);
  }

  // Waits for the `count` items whose turn it is and takes them, the oldest of each lane. Those for which
  // unwanted(item) holds do not count: they are moved to `removed`. DeadlineExceeded, taking none but these, when there
  // are fewer at the deadline; Cancelled after Close.
  template <typename Unwanted>
  absl::StatusOr<std::vector<T>> Pop(std::size_t count, Clock::time_point deadline, Unwanted unwanted,
                                     std::vector<T>& removed) {
    for (;;) {
      std::vector<T> popped;
      Parked resumed;
      bool in_time = true;
      {
        const MutexLock lock(mutex_);
        while (in_time && !closed_ && !HasTurns(count) && !CanResume()) in_time = changed_.WaitUntil(mutex_, deadline);
        if (closed_) return absl::CancelledError("closed");
        for (Lane& lane : lanes_) {
          Items& items = lane.items;
          MoveOut(items, std::stable_partition(items.begin(), items.end(), std::not_fn(unwanted)), removed);
        }
        TakeTurns(count, popped);
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
          if (HasRoom(lane)) resumed.merge(lanes_[lane].parked);
        }
      }
      for (const auto& [ticket, resume] : resumed) resume();
      if (!popped.empty()) return popped;
      if (!in_time) return absl::DeadlineExceededError("too few items");
    }
  }

  // Wakes every waiter, refuses further items and returns those that nobody took. Idempotent.
  std::vector<T> Close() {
    Parked dropped;
    std::vector<T> left;
    const MutexLock lock(mutex_);
    closed_ = true;
    for (Lane& lane : lanes_) {
      dropped.merge(lane.parked);
      MoveOut(lane.items, lane.items.begin(), left);
    }
    changed_.NotifyAll();
    return left;
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return NumItems();
  }

  std::size_t num_parked() const {
    const MutexLock lock(mutex_);
    std::size_t parked = 0;
    for (const Lane& lane : lanes_) parked += lane.parked.size();
    return parked;
  }

 private:
  using Items = std::deque<T>;
  using Parked = std::map<Ticket, std::function<void()>>;  // in order of parking

  struct Lane {
    Items items;
    Parked parked;
    std::size_t num_producers = 0;
  };

  // Lanes without producers count for nothing: whatever they hold, the others can fill a batch without them.
  bool HasRoom(std::size_t lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<bool> have_producers;
    have_producers.reserve(lanes_.size());
    for (const Lane& each : lanes_) have_producers.push_back(each.num_producers > 0);
    return lanes_[lane].items.size() < shares_.MostOf(lane, capacity_, have_producers);
  }

  bool CanResume() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!lanes_[lane].parked.empty() && HasRoom(lane)) return true;
    }
    return false;
  }

  // The lanes of the next `count` turns as far as their items are there. `shares` goes on by these turns.
  std::vector<std::size_t> Turns(std::size_t count, FairShares& shares) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::size_t> left;
    std::vector<bool> take_part;
    for (const Lane& lane : lanes_) {
      left.push_back(lane.items.size());
      take_part.push_back(lane.num_producers > 0 || !lane.items.empty());
    }
    std::vector<std::size_t> turns;
    while (turns.size() < count) {
      const std::optional<std::size_t> lane = shares.Next(take_part);
      if (!lane.has_value() || left[*lane] == 0) break;
      --left[*lane];
      take_part[*lane] = lanes_[*lane].num_producers > 0 || left[*lane] > 0;
      turns.push_back(*lane);
    }
    return turns;
  }

  bool HasTurns(std::size_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FairShares shares = shares_;
    return NumItems() >= count && Turns(count, shares).size() == count;
  }

  // Takes the items of `count` turns, or none.
  void TakeTurns(std::size_t count, std::vector<T>& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (NumItems() < count) return;
    FairShares shares = shares_;
    const std::vector<std::size_t> turns = Turns(count, shares);
    if (turns.size() < count) return;
    shares_ = shares;
    for (const std::size_t lane : turns) {
      taken.push_back(std::move(lanes_[lane].items.front()));
      lanes_[lane].items.pop_front();
    }
  }

  std::size_t NumItems() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::size_t items = 0;
    for (const Lane& lane : lanes_) items += lane.items.size();
    return items;
  }

  // From `begin` on.
  static void MoveOut(Items& items, typename Items::iterator begin, std::vector<T>& out) {
    out.insert(out.end(), std::make_move_iterator(begin), std::make_move_iterator(items.end()));
    items.erase(begin, items.end());
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  FairShares shares_ ABSL_GUARDED_BY(mutex_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kubebeast
