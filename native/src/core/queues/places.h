// Places that producers hold in a queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "queues/fair_shares.h"
#include "queues/patience.h"
#include "sync/clock.h"

namespace kubebeast {

// Limit on the items that wait or are being made: `spare` more than all producers make at once, but at most `most`. If
// spare == most, it is this number for any producers.
struct QueueCapacity {
  std::size_t spare = 1;
  std::size_t most = 1;
};

// The room in a queue's lanes. A producer of `size` items at a time holds that many places from Take to GiveBack.
//
// Places are lent: Await marks the start of a producer's wait for its peer, and Return the peer's answer. If the peer
// is silent for longer than Patience allows, the producer is away: its places are free for others, and it owes them. It
// needs places again before it goes on, so the items in the making and waiting never exceed the capacity by more than
// one producer's. Not thread-safe.
class Places {
 public:
  // Id of a producer; never 0.
  using Producer = std::uint64_t;

  // capacity: of all lanes together. weights: positive, one per lane.
  Places(QueueCapacity capacity, std::vector<double> weights);

  Producer Join(std::size_t lane, std::size_t size);
  // Gives back the producer's places and forgets it. Does nothing if there is no such producer.
  void Leave(Producer producer);
  std::size_t LaneOf(Producer producer) const { return producers_.at(producer).lane; }

  void Take(Producer producer);
  // Returns false if the producer owed its places: its items need others.
  bool GiveBack(Producer producer);
  // Returns true if the producer's places were taken away.
  bool Owes(Producer producer) const { return producers_.at(producer).owes; }

  // Marks the producer as silent from `since` on, even if it has not begun.
  void Await(Producer producer, Clock::time_point since);
  // Ends the producer's silence.
  void Return(Producer producer, Clock::time_point now);
  // Takes away the places of producers that are silent for too long.
  void Reclaim(Clock::time_point now);
  // Returns the time until which Reclaim has nothing to do, unless Await or Return is called.
  Clock::time_point next_reclaim() const { return next_reclaim_; }

  bool HasRoom(std::size_t lane, std::size_t num_items) const {
    return num_items + lanes_[lane].running < CapacityOf(lane);
  }
  // Returns true if items of the lane are to be expected: it has producers, and not all of them are away for long.
  bool IsProducing(std::size_t lane) const { return lanes_[lane].num_producers > 0 && !lanes_[lane].is_silent; }

  // Returns the number of items that producers with places are about to push.
  std::size_t num_running() const;
  // Returns the capacity of all lanes together, for the current producers.
  std::size_t capacity() const;

 private:
  struct State {
    std::size_t lane = 0;
    std::size_t size = 0;
    bool runs = false;    // holds places
    bool owes = false;    // held places, which were taken away
    bool silent = false;  // from `since` on
    bool away = false;    // silent for too long
    Clock::time_point since;
  };
  struct Lane {
    std::size_t num_producers = 0;
    std::size_t num_away = 0;
    std::size_t produced = 0;  // items of all producers
    std::size_t running = 0;   // items of producers that hold places
    bool is_silent = false;
    Clock::time_point heard_at = Clock::time_point::min();  // the last sign of a peer
  };

  std::size_t CapacityOf(std::size_t lane) const;
  void Stop(State& state);
  void TakeAway(State& state);
  Clock::time_point DueOf(const State& state) const;

  const QueueCapacity capacity_;
  const FairShares shares_;
  Patience patience_;
  std::vector<Lane> lanes_;
  std::unordered_map<Producer, State> producers_;
  Producer last_producer_ = 0;
  Clock::time_point next_reclaim_ = Clock::time_point::max();
};

}  // namespace kubebeast
