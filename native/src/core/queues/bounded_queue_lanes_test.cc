// Lanes of a queue: their shares, their waits for each other, and the producers that are held back.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "queues/bounded_queue.h"
#include "testing/test_patience.h"

namespace kubebeast {
namespace {

using Items = std::vector<int>;

// A queue with a producer in every lane.
class LanesQueue : public BoundedQueue<int> {
 public:
  LanesQueue(QueueCapacity capacity, const std::vector<double>& weights) : BoundedQueue(capacity, weights) {
    for (std::size_t lane = 0; lane < weights.size(); ++lane) producers_.push_back(Join(lane));
  }

  // Pushes items of the lane: 0, 1, ... for lane 0, 100, 101, ... for lane 1.
  void Fill(std::size_t lane, int first, int count) {
    std::vector<int> items;
    items.reserve(count);
    for (int i = 0; i < count; ++i) items.push_back(static_cast<int>(100 * lane) + first + i);
    ASSERT_TRUE(Push(items, producers_[lane]));
  }

  void JoinLane(std::size_t lane) { producers_[lane] = Join(lane); }
  void LeaveLane(std::size_t lane) { Leave(producers_[lane]); }
  // Returns true if the lane's producer has to wait.
  bool ParkLane(std::size_t lane, std::function<void()> resume = [] {}) {
    return Park(std::move(resume), producers_[lane]);
  }

  absl::StatusOr<std::vector<int>> Take(std::size_t count, Clock::time_point deadline = Clock::now()) {
    std::vector<int> unwanted;
    return Pop(count, deadline, [](int) { return false; }, unwanted);
  }

 private:
  std::vector<Producer> producers_;
};

class BoundedQueueLanesTest : public ::testing::Test {
 protected:
  LanesQueue queue_{{6, 6}, {2, 1}};
};

TEST_F(BoundedQueueLanesTest, PopTakesTheOldestOfEachLaneByTheirWeights) {
  queue_.Fill(1, 0, 4);
  queue_.Fill(0, 0, 8);
  Items popped = *queue_.Take(6);
  std::sort(popped.begin(), popped.end());
  EXPECT_EQ(popped, (Items{0, 1, 2, 3, 100, 101}));
}

TEST_F(BoundedQueueLanesTest, SharesHoldOverBatchesThatTheyDoNotDivide) {
  std::size_t of_lane_1 = 0;
  for (int i = 0; i < 300; ++i) {
    queue_.Fill(0, 0, 4);
    queue_.Fill(1, 0, 4);
    const auto popped = queue_.Take(4);
    ASSERT_TRUE(popped.ok());
    for (const int item : *popped) of_lane_1 += item >= 100 ? 1 : 0;
  }
  EXPECT_EQ(of_lane_1, 400);
}

TEST_F(BoundedQueueLanesTest, PopWaitsForTheLaneWhoseTurnItIs) {
  queue_.Fill(0, 0, 10);
  EXPECT_EQ(queue_.Take(3).status().code(), absl::StatusCode::kDeadlineExceeded);
  auto popped = std::async(std::launch::async, [this] { return queue_.Take(3, Clock::now() + kPatience); });
  queue_.Fill(1, 0, 1);
  EXPECT_EQ(popped.get()->size(), 3);
  EXPECT_EQ(queue_.size(), 8);
}

TEST_F(BoundedQueueLanesTest, ShareOfALaneWithoutProducersGoesToTheOthers) {
  queue_.Fill(0, 0, 6);
  auto popped = std::async(std::launch::async, [this] { return queue_.Take(3, Clock::now() + kPatience); });
  queue_.LeaveLane(1);
  EXPECT_EQ(*popped.get(), (Items{0, 1, 2}));
  queue_.JoinLane(1);
  EXPECT_EQ(queue_.Take(3).status().code(), absl::StatusCode::kDeadlineExceeded) << "it is back, and waited for";
  queue_.Fill(1, 0, 9);
  Items again = *queue_.Take(3);
  EXPECT_EQ(std::count_if(again.begin(), again.end(), [](int item) { return item >= 100; }), 1)
      << "what it missed is not made up for";
}

TEST_F(BoundedQueueLanesTest, ItemsOfALaneWithoutProducersAreUsedUp) {
  queue_.Fill(1, 0, 1);
  queue_.Fill(0, 0, 6);
  queue_.LeaveLane(1);
  Items popped = *queue_.Take(6);
  std::sort(popped.begin(), popped.end());
  EXPECT_EQ(popped, (Items{0, 1, 2, 3, 4, 100}));
}

TEST_F(BoundedQueueLanesTest, FullLaneHoldsOnlyItsOwnProducersBack) {
  queue_.Fill(0, 0, 5);
  bool resumed = false;
  ASSERT_TRUE(queue_.ParkLane(0, [&resumed] { resumed = true; }));
  EXPECT_FALSE(queue_.ParkLane(1));
  queue_.Fill(1, 0, 3);
  EXPECT_TRUE(queue_.ParkLane(1)) << "a third of the capacity and a place of grace";
  ASSERT_TRUE(queue_.Take(3).ok());
  EXPECT_TRUE(resumed);
  EXPECT_EQ(queue_.num_parked(), 0);
}

TEST_F(BoundedQueueLanesTest, WholeCapacityIsForTheLaneThatIsLeft) {
  queue_.Fill(0, 0, 5);
  std::promise<void> resumed;
  ASSERT_TRUE(queue_.ParkLane(0, [&resumed] { resumed.set_value(); }));
  auto popped = std::async(std::launch::async, [this] { return queue_.Take(6, Clock::now() + kPatience); });
  queue_.LeaveLane(1);
  ASSERT_TRUE(IsKept(resumed.get_future())) << "else Pop would wait for a producer that waits for Pop";
  queue_.Fill(0, 5, 1);
  EXPECT_EQ(*popped.get(), (Items{0, 1, 2, 3, 4, 5}));
}

TEST_F(BoundedQueueLanesTest, CloseDropsEveryLane) {
  queue_.Fill(0, 0, 5);
  queue_.Fill(1, 0, 1);
  ASSERT_TRUE(queue_.ParkLane(0, [] { FAIL() << "resumed by Close"; }));
  EXPECT_EQ(queue_.Close(), (Items{0, 1, 2, 3, 4, 100}));
  EXPECT_EQ(queue_.num_parked(), 0);
}

// The batch is as large as the capacity: with less room in a lane, its producers and Pop would wait for each other.
TEST(BoundedQueueRoomTest, EveryLaneHasRoomForItsTurnsInABatch) {
  const std::vector<double> weights{5, 1, 1, 0.3, 17};
  constexpr std::size_t kBatch = 8;
  LanesQueue queue({kBatch, kBatch}, weights);
  std::vector<char> parked(weights.size());
  std::vector<char> resumed(weights.size());
  for (int i = 0; i < 1000; ++i) {
    for (std::size_t lane = 0; lane < weights.size(); ++lane) {
      if (std::exchange(resumed[lane], 0)) queue.Fill(lane, 0, 1);
      while (!parked[lane]) {
        parked[lane] = queue.ParkLane(lane, [&, lane] {
          parked[lane] = 0;
          resumed[lane] = 1;
        });
        if (!parked[lane]) queue.Fill(lane, 0, 1);
      }
    }
    ASSERT_TRUE(queue.Take(kBatch).ok()) << "batch " << i;
  }
}

}  // namespace
}  // namespace kubebeast
