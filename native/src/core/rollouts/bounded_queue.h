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
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollouts/fair_shares.h"
#include "sync/mutex.h"

namespace kubebeast {

// How many items may be waiting or in the making: `spare` more than all producers make at once, but never more than
// `most`. With spare == most it is this number, whoever produces.
struct QueueCapacity {
  std::size_t spare = 1;
  std::size_t most = 1;
};

// Lanes of items, each first in, first out, of which Pop takes by turns: a lane's share of the items is its weight's.
//
// Its producers run in transport threads, which must never block. A producer makes `size` items at a time and asks with
// Park() before it begins: while the items that its lane holds, and those that the lane's running producers are about
// to push, are as many as the capacity has for the lane, it leaves a continuation. Room is given to parked producers in
// the order of parking, by Pop and by Resume, in whose threads the continuations run. So a lane never holds more than
// its part of the capacity and the items of one producer, and one producer runs whatever its size.
//
// Nobody waits in vain: a running producer counts until it pushes or leaves, whatever it pushes, and a lane without
// running producers is either full, which is enough for Pop, or has room for the next.
//
// A lane takes part while it has producers, or items still: Pop waits for the lane whose turn it is. Without them its
// turns go to the others, and it does not catch up on them later. Thread-safe; no callback runs with the queue locked.
template <typename T>
class BoundedQueue {
 public:
  // Names a producer; never 0.
  using Producer = std::uint64_t;

  // capacity: of all lanes together, at least the `count` of every Pop. weights: positive, one a lane.
  explicit BoundedQueue(QueueCapacity capacity, std::vector<double> weights = {1.0})
      : capacity_(capacity), shares_(std::move(weights)), lanes_(shares_.num_lanes()) {}

  // A producer of `lane`, of `size` items at a time, is there until Leave. Never blocks.
  Producer Join(std::size_t lane = 0, std::size_t size = 1) {
    const MutexLock lock(mutex_);
    lanes_[lane].produced += size;
    ++lanes_[lane].num_producers;
    producers_.emplace(++last_producer_, State{.lane = lane, .size = size});
    changed_.NotifyAll();
    return last_producer_;
  }

  // Forgets the producer, running or parked; its continuation may run at this moment.
  void Leave(Producer producer) {
    const MutexLock lock(mutex_);
    const auto found = producers_.find(producer);
    if (found == producers_.end()) return;
    State& state = found->second;
    Stop(state);
    Lane& lane = lanes_[state.lane];
    lane.parked.erase(state.turn);
    lane.produced -= state.size;
    --lane.num_producers;
    producers_.erase(found);
    changed_.NotifyAll();
  }

  // Takes what the producer made, also beyond capacity and also nothing: it runs no longer. False and untouched after
  // Close. Never blocks.
  [[nodiscard]] bool Push(std::vector<T>& items, Producer producer) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    State& state = producers_.at(producer);
    Stop(state);
    std::move(items.begin(), items.end(), std::back_inserter(lanes_[state.lane].items));
    items.clear();
    if (NumItems() >= fewest_wanted_ || CanResume()) changed_.NotifyAll();
    return true;
  }

  // Whether the producer has to wait: false when it may run now (or the queue is closed). Otherwise `resume` runs once
  // when it may; Close and Leave drop it. Never blocks.
  [[nodiscard]] bool Park(std::function<void()> resume, Producer producer) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    State& state = producers_.at(producer);
    Lane& lane = lanes_[state.lane];
    if (lane.parked.empty() && HasRoom(state.lane)) {
      Run(state);
      return false;
    }
    state.turn = ++last_turn_;
    lane.parked.emplace(state.turn, Parked{producer, std::move(resume)});
    changed_.NotifyAll();
    return true;
  }

  // Gives parked producers the room that others have left: those that ended, or pushed less than they might have. Pop
  // does the same, so this is for the time in which nobody pops. Never blocks.
  void Resume() {
    std::vector<std::function<void()>> resumed;
    {
      const MutexLock lock(mutex_);
      resumed = TakeResumed();
    }
    for (const auto& resume : resumed) resume();
  }

  // Waits for the `count` items whose turn it is and takes them, the oldest of each lane. Those for which
  // unwanted(item) holds do not count: they are moved to `removed`. DeadlineExceeded, taking none but these, when there
  // are fewer at the deadline; Cancelled after Close.
  template <typename Unwanted>
  absl::StatusOr<std::vector<T>> Pop(std::size_t count, Clock::time_point deadline, Unwanted unwanted,
                                     std::vector<T>& removed) {
    for (;;) {
      std::vector<T> popped;
      std::vector<std::function<void()>> resumed;
      bool in_time = true;
      {
        const MutexLock lock(mutex_);
        while (in_time && !closed_ && !HasTurns(count) && !CanResume()) in_time = Wait(count, deadline);
        if (closed_) return absl::CancelledError("closed");
        for (Lane& lane : lanes_) {
          Waiting& items = lane.items;
          MoveOut(items, std::stable_partition(items.begin(), items.end(), std::not_fn(unwanted)), removed);
        }
        TakeTurns(count, popped);
        resumed = TakeResumed();
      }
      for (const auto& resume : resumed) resume();
      if (!popped.empty()) return popped;
      if (!in_time) return absl::DeadlineExceededError("too few items");
    }
  }

  // Wakes every waiter, refuses further items and returns those that nobody took. Idempotent.
  std::vector<T> Close() {
    std::vector<ParkedByTurn> dropped;
    std::vector<T> left;
    const MutexLock lock(mutex_);
    closed_ = true;
    for (Lane& lane : lanes_) {
      dropped.push_back(std::exchange(lane.parked, {}));
      MoveOut(lane.items, lane.items.begin(), left);
    }
    changed_.NotifyAll();
    return left;
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return NumItems();
  }

  // Items that running producers are about to push.
  std::size_t num_running() const {
    const MutexLock lock(mutex_);
    std::size_t running = 0;
    for (const Lane& lane : lanes_) running += lane.running;
    return running;
  }

  std::size_t num_parked() const {
    const MutexLock lock(mutex_);
    std::size_t parked = 0;
    for (const Lane& lane : lanes_) parked += lane.parked.size();
    return parked;
  }

  // Of all lanes together, for the producers that there are.
  std::size_t capacity() const {
    const MutexLock lock(mutex_);
    std::size_t produced = 0;
    for (const Lane& lane : lanes_) produced += lane.produced;
    return std::min(capacity_.spare + produced, capacity_.most);
  }

 private:
  using Waiting = std::deque<T>;

  struct State {
    std::size_t lane = 0;
    std::size_t size = 0;
    bool runs = false;
    std::uint64_t turn = 0;  // of the last time that it was parked
  };
  struct Parked {
    Producer producer = 0;
    std::function<void()> resume;
  };
  using ParkedByTurn = std::map<std::uint64_t, Parked>;

  struct Lane {
    Waiting items;
    ParkedByTurn parked;
    std::size_t num_producers = 0;
    std::size_t produced = 0;  // items of all producers
    std::size_t running = 0;   // of those that run
  };

  void Run(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state.runs = true;
    lanes_[state.lane].running += state.size;
  }

  void Stop(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(state.runs, false)) lanes_[state.lane].running -= state.size;
  }

  bool HasRoom(std::size_t lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return lanes_[lane].items.size() + lanes_[lane].running < CapacityOf(lane);
  }

  // Lanes without producers count for nothing: whatever they hold, the others can fill a batch without them.
  std::size_t CapacityOf(std::size_t lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (lanes_.size() == 1) return std::min(capacity_.spare + lanes_[lane].produced, capacity_.most);
    std::vector<bool> have_producers;
    have_producers.reserve(lanes_.size());
    for (const Lane& each : lanes_) have_producers.push_back(each.num_producers > 0);
    return std::min(shares_.MostOf(lane, capacity_.spare, have_producers) + lanes_[lane].produced,
                    shares_.MostOf(lane, capacity_.most, have_producers));
  }

  bool CanResume() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!lanes_[lane].parked.empty() && HasRoom(lane)) return true;
    }
    return false;
  }

  // Lets parked producers run while there is room; their continuations, in the order of parking.
  std::vector<std::function<void()>> TakeResumed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::function<void()>> resumed;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      ParkedByTurn& parked = lanes_[lane].parked;
      while (!parked.empty() && HasRoom(lane)) {
        const auto first = parked.begin();
        Run(producers_.at(first->second.producer));
        resumed.push_back(std::move(first->second.resume));
        parked.erase(first);
      }
    }
    return resumed;
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

  // For `count` items, or anything else. False at the deadline.
  bool Wait(std::size_t count, Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    fewest_wanted_ = num_waiting_++ == 0 ? count : std::min(fewest_wanted_, count);
    const bool in_time = changed_.WaitUntil(mutex_, deadline);
    --num_waiting_;
    return in_time;
  }

  bool HasTurns(std::size_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (NumItems() < count) return false;
    FairShares shares = shares_;
    return Turns(count, shares).size() == count;
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
  static void MoveOut(Waiting& items, typename Waiting::iterator begin, std::vector<T>& out) {
    out.insert(out.end(), std::make_move_iterator(begin), std::make_move_iterator(items.end()));
    items.erase(begin, items.end());
  }

  const QueueCapacity capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  FairShares shares_ ABSL_GUARDED_BY(mutex_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<Producer, State> producers_ ABSL_GUARDED_BY(mutex_);
  Producer last_producer_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t fewest_wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // of those who wait
};

}  // namespace kubebeast
