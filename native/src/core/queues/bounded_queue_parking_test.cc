// Running and parked producers of a queue: their order, and the room that is given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <future>
#include <utility>
#include <vector>

#include "queues/bounded_queue.h"
#include "testing/parking_queue.h"
#include "testing/test_patience.h"

namespace kubebeast {
namespace {

TEST(BoundedQueueParkingTest, ProducersRunWhileWhatTheyMakeFits) {
  ParkingQueue queue({3, 3});
  queue.JoinMany(4, 1);
  EXPECT_TRUE(queue.Begin('a'));
  EXPECT_TRUE(queue.Begin('b'));
  EXPECT_TRUE(queue.Begin('c'));
  EXPECT_EQ(queue.num_running(), 3);
  EXPECT_FALSE(queue.Begin('d')) << "nothing is queued, but three items are in the making";
  queue.Deliver('a');
  EXPECT_FALSE(queue.Begin('a')) << "an item that waits takes as much room as one in the making";
  EXPECT_EQ(queue.num_parked(), 2);
}

TEST(BoundedQueueParkingTest, OneIsResumedForEachItemTakenInOrderOfParking) {
  ParkingQueue queue({4, 4});
  queue.JoinMany(6, 1);
  for (const char name : {'a', 'b', 'c', 'd'}) {
    ASSERT_TRUE(queue.Begin(name));
    queue.Deliver(name);
  }
  for (const char name : {'e', 'b', 'f', 'a', 'd', 'c'}) ASSERT_FALSE(queue.Begin(name));
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.resumed, "e");
  ASSERT_TRUE(queue.Take(2));
  EXPECT_EQ(queue.resumed, "ebf");
  EXPECT_EQ(queue.num_parked(), 3);
}

TEST(BoundedQueueParkingTest, WhoComesAnewWaitsBehindThoseWhoWait) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(4, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_TRUE(queue.Begin('b'));
  ASSERT_FALSE(queue.Begin('c'));
  queue.End('a');
  EXPECT_FALSE(queue.Begin('d')) << "the room is c's";
  queue.Resume();
  EXPECT_EQ(queue.resumed, "c");
}

TEST(BoundedQueueParkingTest, LargeProducersOverrunTheCapacityByOneOfThem) {
  constexpr std::size_t kSize = 32;
  ParkingQueue queue({16, 16});
  queue.JoinMany(3, kSize);
  EXPECT_TRUE(queue.Begin('a')) << "one runs whatever its size";
  EXPECT_FALSE(queue.Begin('b'));
  EXPECT_FALSE(queue.Begin('c'));
  queue.Deliver('a');
  ASSERT_FALSE(queue.Begin('a'));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(queue.Take(8));
    EXPECT_EQ(queue.resumed, "");
  }
  ASSERT_TRUE(queue.Take(8));
  EXPECT_EQ(queue.resumed, "b");
  EXPECT_EQ(queue.size() + queue.num_running(), 8 + kSize);
}

TEST(BoundedQueueParkingTest, DroppedItemsMakeRoom) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(3, 1);
  for (const char name : {'a', 'b'}) {
    ASSERT_TRUE(queue.Begin(name));
    queue.Deliver(name);
  }
  for (const char name : {'c', 'a', 'b'}) ASSERT_FALSE(queue.Begin(name));
  queue.DropAll();
  EXPECT_EQ(queue.resumed, "ca");
}

// A stream pushes nothing if all of its unrolls are too old to be queued.
TEST(BoundedQueueParkingTest, RoomOfAProducerThatPushesNothingGoesToTheNext) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(2, 2);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_FALSE(queue.Begin('b'));
  for (int i = 0; i < 3; ++i) {
    queue.resumed.clear();
    queue.DeliverSome(i % 2 == 0 ? 'a' : 'b', 0);
    ASSERT_FALSE(queue.Begin(i % 2 == 0 ? 'a' : 'b')) << "it is the other one's turn";
    queue.Resume();
    EXPECT_EQ(queue.resumed, i % 2 == 0 ? "b" : "a");
  }
}

TEST(BoundedQueueParkingTest, PopThatWaitsGivesTheRoomOfTheDeadToThoseWhoWait) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(1, 1);
  ASSERT_TRUE(queue.Begin('a'));
  std::promise<void> resumed;
  const auto parked = queue.Join();
  ASSERT_TRUE(queue.Park([&resumed] { resumed.set_value(); }, parked));
  auto popped = std::async(std::launch::async, [&queue] { return queue.Take(1, Clock::now() + kPatience); });
  queue.End('a');
  ASSERT_TRUE(IsKept(resumed.get_future()));
  std::vector<int> items{1};
  ASSERT_TRUE(queue.Push(items, parked));
  EXPECT_TRUE(popped.get());
}

TEST(BoundedQueueParkingTest, ProducerThatDiesWhileItIsResumedGivesItsRoomBack) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(3, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_FALSE(queue.Begin('b'));
  ASSERT_FALSE(queue.Begin('c'));
  queue.End('a');
  queue.Resume();
  ASSERT_EQ(queue.resumed, "b");
  queue.End('b');
  queue.Resume();
  EXPECT_EQ(queue.resumed, "bc");
}

TEST(BoundedQueueParkingTest, ParkedProducerThatLeavesIsNotResumed) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(3, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_FALSE(queue.Begin('b'));
  ASSERT_FALSE(queue.Begin('c'));
  queue.End('b');
  queue.Deliver('a');
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.resumed, "c");
}

TEST(BoundedQueueParkingTest, CapacityGrowsWithTheProducersUpToItsBound) {
  ParkingQueue queue({.spare = 2, .most = 6});
  EXPECT_EQ(queue.capacity(), 2);
  queue.JoinMany(3, 1);
  EXPECT_EQ(queue.capacity(), 5);
  for (const char name : {'a', 'b', 'c'}) {
    EXPECT_TRUE(queue.Begin(name)) << "all run while no more than the spare items wait";
  }
  queue.JoinMany(5, 1);
  EXPECT_EQ(queue.capacity(), 6);
  for (const char name : {'d', 'e', 'f'}) EXPECT_TRUE(queue.Begin(name));
  EXPECT_FALSE(queue.Begin('g'));
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'h'}) queue.End(name);
  EXPECT_EQ(queue.capacity(), 3);
  queue.Resume();
  EXPECT_EQ(queue.resumed, "g");
}

// All deliver at once, like streams in step: a learner's view of a fleet much larger than the capacity.
TEST(BoundedQueueParkingTest, LagIsBoundedAndTurnsAreEqualWithManyMoreProducersThanRoom) {
  constexpr std::size_t kProducers = 1000;
  constexpr std::size_t kSize = 2;
  constexpr std::size_t kCapacity = 64;
  constexpr std::size_t kBatch = 8;
  BoundedQueue<std::size_t> queue({kCapacity, kCapacity});
  struct Life {
    BoundedQueue<std::size_t>::Producer name = 0;
    std::size_t began = 0;  // batches taken before
    std::size_t runs = 0;
  };
  std::vector<Life> lives(kProducers);
  std::deque<std::size_t> running;
  std::size_t batches = 0;
  const auto begin = [&](std::size_t place) {
    const auto run = [&lives, &running, &batches, place] {
      lives[place].began = batches;
      running.push_back(place);
    };
    if (!queue.Park(run, lives[place].name)) run();
  };
  for (Life& life : lives) life.name = queue.Join(0, kSize);
  for (std::size_t place = 0; place < kProducers; ++place) begin(place);
  std::size_t largest_lag = 0;
  std::size_t largest = 0;
  while (batches < 4 * kProducers * kSize / kBatch) {
    for (const std::size_t place : std::exchange(running, {})) {
      std::vector<std::size_t> items(kSize, lives[place].began);
      ASSERT_TRUE(queue.Push(items, lives[place].name));
      ++lives[place].runs;
      begin(place);
    }
    largest = std::max(largest, queue.size() + queue.num_running());
    std::vector<std::size_t> unwanted;
    const auto popped = queue.Pop(kBatch, Clock::now(), [](std::size_t) { return false; }, unwanted);
    ASSERT_TRUE(popped.ok()) << popped.status();
    for (const std::size_t began : *popped) largest_lag = std::max(largest_lag, batches - began);
    ++batches;
  }
  EXPECT_LT(largest, kCapacity + kSize);
  EXPECT_LE(largest_lag, (kCapacity + kSize) / kBatch);
  const auto by_runs = [](const Life& one, const Life& other) { return one.runs < other.runs; };
  const auto [fewest, most] = std::minmax_element(lives.begin(), lives.end(), by_runs);
  EXPECT_GE(fewest->runs, 3);
  EXPECT_LE(most->runs, fewest->runs + 1);
}

}  // namespace
}  // namespace kubebeast
