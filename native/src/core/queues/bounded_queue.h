// Bounded queue that holds its producers back without blocking their threads.
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
#include "queues/fair_shares.h"
#include "queues/places.h"
#include "sync/mutex.h"

namespace kubebeast {

// A queue of lanes, each first in, first out. Pop takes from them by turns, in proportion to their weights.
//
// Producers run in transport threads, which must never block. A producer makes `size` items at a time and calls Park()
// before it begins: if the items in its lane, and those that the lane's running producers are about to push, are as
// many as the lane's part of the capacity, it leaves a continuation. Pop and Resume give room to parked producers in
// the order of parking, and run the continuations in the calling thread. So a lane never holds more than its part of
// the capacity plus the items of one producer, and a single producer can run at any size.
//
// No wait is endless: a running producer counts until it pushes, even no items, or leaves, or until its peer is silent
// for too long (Await, Return); and a lane without running producers is either full, which is enough for Pop, or has
// room for the next. A producer that has lost its room by silence parks ahead of those that have not begun. Items that
// it pushes without room, as it leaves, are owed: they wait outside the lane until there is room.
//
// A lane takes part if it has items, or producers with peers that are not silent for too long: Pop waits for the lane
// of the next turn. Otherwise its turns go to the other lanes, and it does not catch up on them later. Thread-safe;
// only Pop blocks; no callback runs with the queue locked.
template <typename T>
class BoundedQueue {
 public:
  using Producer = Places::Producer;

  // capacity: of all lanes together, at least the `count` of every Pop. weights: positive, one per lane.
  explicit BoundedQueue(QueueCapacity capacity, const std::vector<double>& weights = {1.0})
      : places_(capacity, weights), shares_(weights), lanes_(weights.size()) {}

  // Adds a producer of `size` items at a time to `lane`, until Leave. Never blocks.
  Producer Join(std::size_t lane = 0, std::size_t size = 1) {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
    return places_.Join(lane, size);
  }

  // Forgets the producer, running or parked; its continuation may run at this moment.
  void Leave(Producer producer) {
    const MutexLock lock(mutex_);
    if (const auto parked = parked_.find(producer); parked != parked_.end()) {
      lanes_[places_.LaneOf(producer)].parked.erase(parked->second);
      parked_.erase(parked);
    }
    places_.Leave(producer);
    changed_.NotifyAll();
  }

  // Takes the producer's items, even beyond the capacity or none at all; it no longer runs. Returns false, with the
  // items untouched, after Close. Never blocks.
  [[nodiscard]] bool Push(std::vector<T>& items, Producer producer) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    const std::size_t lane = places_.LaneOf(producer);
    Waiting& to = places_.GiveBack(producer) ? lanes_[lane].items : lanes_[lane].owed;
    std::move(items.begin(), items.end(), std::back_inserter(to));
    items.clear();
    Admit(lane);
    if (NumItems() >= fewest_wanted_ || CanResume()) changed_.NotifyAll();
    return true;
  }

  // Returns true if the producer has to wait, false if it may run now (or the queue is closed). `resume` runs once when
  // it may; Close and Leave drop it. Never blocks.
  [[nodiscard]] bool Park(std::function<void()> resume, Producer producer) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    places_.Reclaim(Clock::now());
    const std::size_t lane = places_.LaneOf(producer);
    const Turn turn{places_.Owes(producer) ? Claim::kOlder : Claim::kNew, ++last_turn_};
    ParkedByTurn& parked = lanes_[lane].parked;
    if ((parked.empty() || turn < parked.begin()->first) && HasRoom(lane)) {
      places_.Take(producer);
      return false;
    }
    parked.emplace(turn, Parked{producer, std::move(resume)});
    parked_.emplace(producer, turn);
    changed_.NotifyAll();
    return true;
  }

  // Marks the producer as waiting for its peer from `since` until Return, even if it has not begun. Never blocks.
  void Await(Producer producer, Clock::time_point since) {
    const MutexLock lock(mutex_);
    if (closed_) return;
    const Clock::time_point before = places_.next_reclaim();
    places_.Await(producer, since);
    if (num_waiting_ > 0 && places_.next_reclaim() < before) changed_.NotifyAll();
  }

  // Ends the wait: the peer answered at `now`. Returns false if the producer has lost its room to others meanwhile: it
  // must Park before it goes on. Never blocks.
  [[nodiscard]] bool Return(Producer producer, Clock::time_point now) {
    const MutexLock lock(mutex_);
    if (closed_) return true;
    places_.Return(producer, now);
    return !places_.Owes(producer);
  }

  // Gives parked producers the room of others: those that ended, pushed less than they could have, or are silent for
  // too long. Pop does the same, so this is for times without a Pop. Never blocks.
  void Resume() {
    std::vector<std::function<void()>> resumed;
    {
      const MutexLock lock(mutex_);
      places_.Reclaim(Clock::now());
      resumed = TakeResumed();
    }
    for (const auto& resume : resumed) resume();
  }

  // Blocks until the next `count` turns have items and takes them, the oldest of each lane. Items for which
  // unwanted(item) is true do not count: they are moved to `removed`. Returns DeadlineExceeded, with none taken but
  // these, if there are fewer at the deadline; Cancelled after Close.
  template <typename Unwanted>
  absl::StatusOr<std::vector<T>> Pop(std::size_t count, Clock::time_point deadline, Unwanted unwanted,
                                     std::vector<T>& removed) {
    for (;;) {
      std::vector<T> popped;
      std::vector<std::function<void()>> resumed;
      bool in_time = true;
      {
        const MutexLock lock(mutex_);
        while (in_time && !closed_ && !IsReady(count)) in_time = Wait(count, deadline);
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

  // Wakes every waiting thread, refuses further items and returns those that were not taken. Idempotent.
  std::vector<T> Close() {
    std::vector<ParkedByTurn> dropped;
    std::vector<T> left;
    const MutexLock lock(mutex_);
    closed_ = true;
    parked_.clear();
    for (Lane& lane : lanes_) {
      dropped.push_back(std::exchange(lane.parked, {}));
      MoveOut(lane.items, lane.items.begin(), left);
      MoveOut(lane.owed, lane.owed.begin(), left);
    }
    changed_.NotifyAll();
    return left;
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return NumItems();
  }

  // Returns the number of items that running producers are about to push.
  std::size_t num_running() const {
    const MutexLock lock(mutex_);
    return places_.num_running();
  }

  std::size_t num_parked() const {
    const MutexLock lock(mutex_);
    return parked_.size();
  }

  // Returns the capacity of all lanes together, for the current producers.
  std::size_t capacity() const {
    const MutexLock lock(mutex_);
    return places_.capacity();
  }

 private:
  using Waiting = std::deque<T>;
  // A producer that has begun has older items than one that has not.
  enum class Claim : std::uint8_t { kOlder, kNew };
  using Turn = std::pair<Claim, std::uint64_t>;

  struct Parked {
    Producer producer = 0;
    std::function<void()> resume;
  };
  using ParkedByTurn = std::map<Turn, Parked>;

  struct Lane {
    Waiting items;
    Waiting owed;  // beyond the capacity, and not part of the lane yet
    ParkedByTurn parked;
  };

  bool HasRoom(std::size_t lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return places_.HasRoom(lane, lanes_[lane].items.size());
  }

  bool CanResume() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!(lanes_[lane].parked.empty() && lanes_[lane].owed.empty()) && HasRoom(lane)) return true;
    }
    return false;
  }

  // Moves owed items into the lane while it has room.
  void Admit(std::size_t lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Waiting& owed = lanes_[lane].owed;
    while (!owed.empty() && HasRoom(lane)) {
      lanes_[lane].items.push_back(std::move(owed.front()));
      owed.pop_front();
    }
  }

  // Lets parked producers run while there is room; returns their continuations, in the order of parking.
  std::vector<std::function<void()>> TakeResumed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::function<void()>> resumed;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      Admit(lane);
      ParkedByTurn& parked = lanes_[lane].parked;
      while (!parked.empty() && HasRoom(lane)) {
        const auto first = parked.begin();
        places_.Take(first->second.producer);
        parked_.erase(first->second.producer);
        resumed.push_back(std::move(first->second.resume));
        parked.erase(first);
      }
    }
    return resumed;
  }

  // Returns the lanes of the next `count` turns as far as there are items, and advances `shares` by these turns.
  std::vector<std::size_t> Turns(std::size_t count, FairShares& shares) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::size_t> left;
    std::vector<bool> take_part;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      left.push_back(lanes_[lane].items.size());
      take_part.push_back(places_.IsProducing(lane) || left[lane] > 0);
    }
    std::vector<std::size_t> turns;
    while (turns.size() < count) {
      const std::optional<std::size_t> lane = shares.Next(take_part);
      if (!lane.has_value() || left[*lane] == 0) break;
      --left[*lane];
      take_part[*lane] = places_.IsProducing(*lane) || left[*lane] > 0;
      turns.push_back(*lane);
    }
    return turns;
  }

  // Returns true if Pop has anything to do.
  bool IsReady(std::size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    places_.Reclaim(Clock::now());
    return HasTurns(count) || CanResume();
  }

  // Waits for `count` items or another change. Returns false at the deadline.
  bool Wait(std::size_t count, Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    fewest_wanted_ = num_waiting_++ == 0 ? count : std::min(fewest_wanted_, count);
    const Clock::time_point until = std::min(deadline, places_.next_reclaim());
    const bool woken = changed_.WaitUntil(mutex_, until);
    --num_waiting_;
    return woken || until < deadline;
  }

  bool HasTurns(std::size_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (NumItems() < count) return false;
    FairShares shares = shares_;
    return Turns(count, shares).size() == count;
  }

  // Takes the items of `count` turns, or none if there are fewer.
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

  // Moves the items from `begin` on to `out`.
  static void MoveOut(Waiting& items, typename Waiting::iterator begin, std::vector<T>& out) {
    out.insert(out.end(), std::make_move_iterator(begin), std::make_move_iterator(items.end()));
    items.erase(begin, items.end());
  }

  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Places places_ ABSL_GUARDED_BY(mutex_);
  FairShares shares_ ABSL_GUARDED_BY(mutex_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<Producer, Turn> parked_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t fewest_wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // by a waiting Pop
};

}  // namespace kubebeast
