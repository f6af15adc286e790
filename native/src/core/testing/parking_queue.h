// A queue for tests of running and waiting producers.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "queues/bounded_queue.h"

namespace kubebeast {

// A queue with producers that are named in order of their places: 'a' is the first. Each runs, or waits to be resumed.
class ParkingQueue : public BoundedQueue<int> {
 public:
  explicit ParkingQueue(QueueCapacity capacity, const std::vector<double>& weights = {1.0})
      : BoundedQueue(capacity, weights) {}

  void JoinMany(std::size_t count, std::size_t size, std::size_t lane = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      names_.push_back(Join(lane, size));
      size_ = size;
    }
  }

  // Returns true if the producer runs at once.
  bool Begin(char name) {
    return !Park([this, name] { resumed.push_back(name); }, names_[name - 'a']);
  }

  void Deliver(char name) { DeliverSome(name, size_); }
  void DeliverSome(char name, std::size_t count) {
    std::vector<int> items(count);
    ASSERT_TRUE(Push(items, names_[name - 'a']));
  }
  // Marks its peer as silent for the given time already.
  void FallSilent(char name, Clock::duration silence) { Await(names_[name - 'a'], Clock::now() - silence); }
  // Lets its peer answer; returns true if it may go on without a wait.
  bool GoOn(char name) { return Return(names_[name - 'a'], Clock::now()) || Begin(name); }
  // Lets its peer take the given time for a step.
  void TakeStep(char name, Clock::duration took) {
    FallSilent(name, took);
    EXPECT_TRUE(Return(names_[name - 'a'], Clock::now()));
  }
  void End(char name) { Leave(names_[name - 'a']); }

  bool Take(std::size_t count, Clock::time_point deadline = Clock::now()) {
    std::vector<int> unwanted;
    return Pop(count, deadline, [](int) { return false; }, unwanted).ok();
  }
  void DropAll() {
    std::vector<int> dropped;
    EXPECT_FALSE(Pop(1, Clock::now(), [](int) { return true; }, dropped).ok());
  }

  std::string resumed;  // names of the resumed producers, in order

 private:
  std::vector<Producer> names_;
  std::size_t size_ = 0;
};

}  // namespace kubebeast
