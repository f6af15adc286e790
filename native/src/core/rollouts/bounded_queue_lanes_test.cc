// Lanes of a queue: shares, who waits for whom, who is held back.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "rollouts/bounded_queue.h"
#include "testing/test_patience.h"

namespace kubebeast {
namespace {

using Items = std::vector<int>;

class LanesQueue : public BoundedQueue<int> {
 public:
  using BoundedQueue::BoundedQueue;

  // Items of lane 0 are 0, 1, ..., those of lane 1 are 100, 101, ...
  void Fill(std::size_t lane, int first, int count) {
    std::vector<int> items;
    items.reserve(count);
    for (int i = 0; i < count; ++i) items.push_back(static_cast<int>(100 * lane) + first + i);
    ASSERT_TRUE(Push(items, lane));
  }

  absl::StatusOr<std::vector<int>> Take(std::size_t count, Clock::time_point deadline = Clock::now()) {
    std::vector<int> unwanted;
    return Pop(count, deadline, [](int) { return false; }, unwanted);
  }
};

class BoundedQueueLanesTest : public ::testing::Test {
 protected:
  BoundedQueueLanesTest() {
    queue_.Join(0);
    queue_.Join(1);
  }

  LanesQueue queue_{6, {2, 1}};
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
  queue_.Leave(1);
  EXPECT_EQ(*popped.get(), (Items{0, 1, 2}));
  queue_.Join(1);
  EXPECT_EQ(queue_.Take(3).status().code(), absl::StatusCode::kDeadlineExceeded) << "it is back, and waited for";
  queue_.Fill(1, 0, 9);
  Items again = *queue_.Take(3);
  EXPECT_EQ(std::count_if(again.begin(), again.end(), [](int item) { return item >= 100; }), 1)
      << "what it missed is not made up for";
}

TEST_F(BoundedQueueLanesTest, ItemsOfALaneWithoutProducersAreUsedUp) {
  queue_.Fill(1, 0, 1);
  queue_.Fill(0, 0, 6);
  queue_.Leave(1);
  Items popped = *queue_.Take(6);
  std::sort(popped.begin(), popped.end());
  EXPECT_EQ(popped, (Items{0, 1, 2, 3, 4, 100}));
}

TEST_F(BoundedQueueLanesTest, FullLaneHoldsOnlyItsOwnProducersBack) {
  queue_.Fill(0, 0, 5);
  bool resumed = false;
  ASSERT_TRUE(queue_.Park([&resumed] { resumed = true; }, 0).has_value());
  EXPECT_FALSE(queue_.Park([] {}, 1).has_value());
  queue_.Fill(1, 0, 3);
  EXPECT_TRUE(queue_.Park([] {}, 1).has_value()) << "a third of the capacity and a place of grace";
  ASSERT_TRUE(queue_.Take(3).ok());
  EXPECT_TRUE(resumed);
  EXPECT_EQ(queue_.num_parked(), 0);
}

TEST_F(BoundedQueueLanesTest, WholeCapacityIsForTheLaneThatIsLeft) {
  queue_.Fill(0, 0, 5);
  std::promise<void> resumed;
  ASSERT_TRUE(queue_.Park([&resumed] { resumed.set_value(); }, 0).has_value());
  auto popped = std::async(std::launch::async, [this] { return queue_.Take(6, Clock::now() + kPatience); });
  queue_.Leave(1);
  ASSERT_TRUE(IsKept(resumed.get_future())) << "else Pop would wait for a producer that waits for Pop";
  queue_.Fill(0, 5, 1);
  EXPECT_EQ(*popped.get(), (Items{0, 1, 2, 3, 4, 5}));
}

TEST_F(BoundedQueueLanesTest, CloseDropsEveryLane) {
  queue_.Fill(0, 0, 5);
  queue_.Fill(1, 0, 1);
  ASSERT_TRUE(queue_.Park([] { FAIL() << "resumed by Close"; }, 0).has_value());
  EXPECT_EQ(queue_.Close(), (Items{0, 1, 2, 3, 4, 100}));
  EXPECT_EQ(queue_.num_parked(), 0);
}

// A batch as large as the capacity: with less room in a lane, its producers and Pop would wait for each other.
TEST(BoundedQueueRoomTest, EveryLaneHasRoomForItsTurnsInABatch) {
  const std::vector<double> weights{5, 1, 1, 0.3, 17};
  constexpr std::size_t kBatch = 8;
  LanesQueue queue(kBatch, weights);
  for (std::size_t lane = 0; lane < weights.size(); ++lane) queue.Join(lane);
  for (int i = 0; i < 1000; ++i) {
    for (std::size_t lane = 0; lane < weights.size(); ++lane) {
      while (true) {
        const auto ticket = queue.Park([] {}, lane);
        if (ticket.has_value()) {
          queue.Cancel(*ticket);
          break;
        }
        queue.Fill(lane, 0, 1);
      }
    }
    ASSERT_TRUE(queue.Take(kBatch).ok()) << "batch " << i;
  }
}

}  // namespace
}  // namespace kubebeast
