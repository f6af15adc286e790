// Producers with silent peers: the use of their room, and their debts when they are back.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "testing/parking_queue.h"
#include "testing/test_patience.h"

namespace kubebeast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Step time of the peers: a silence of seconds is far too long.
constexpr milliseconds kStep{20};
constexpr seconds kFrozen{10};

TEST(BoundedQueueSilenceTest, RoomOfASilentProducerGoesToWhoWaits) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  ASSERT_FALSE(queue.Begin('b'));
  queue.FallSilent('a', kFrozen);
  queue.Resume();
  EXPECT_EQ(queue.resumed, "b");
  EXPECT_EQ(queue.num_running(), 1);
}

TEST(BoundedQueueSilenceTest, WhoBeginsFindsTheRoomOfASilentProducer) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  EXPECT_TRUE(queue.Begin('b'));
}

TEST(BoundedQueueSilenceTest, SlowProducersKeepTheirRoom) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', hours(1));
  ASSERT_FALSE(queue.Begin('b'));
  queue.FallSilent('a', hours(2));
  queue.Resume();
  EXPECT_EQ(queue.resumed, "");
}

TEST(BoundedQueueSilenceTest, NobodyIsTooSlowBeforeTheFirstStepOfAll) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(3, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_TRUE(queue.Begin('b'));
  ASSERT_FALSE(queue.Begin('c'));
  queue.FallSilent('a', hours(1));
  queue.Resume();
  EXPECT_EQ(queue.resumed, "");
  queue.TakeStep('b', kStep);
  queue.Resume();
  EXPECT_EQ(queue.resumed, "c") << "b shows what a step takes";
}

TEST(BoundedQueueSilenceTest, HandshakesShowNothing) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(3, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_FALSE(queue.Begin('b'));
  queue.FallSilent('a', kFrozen);
  queue.TakeStep('c', kStep);
  queue.Resume();
  EXPECT_EQ(queue.resumed, "") << "c has not begun: what it took is no step";
}

TEST(BoundedQueueSilenceTest, OneThatIsFrozenLeavesLessPatienceForTheOthers) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(4, 1);
  ASSERT_TRUE(queue.Begin('a'));
  ASSERT_TRUE(queue.Begin('b'));
  queue.TakeStep('a', milliseconds(1));
  ASSERT_FALSE(queue.Begin('c'));
  queue.FallSilent('b', Patience::kShortest - milliseconds(1) - kStep);
  queue.FallSilent('a', kFrozen);
  queue.Resume();
  EXPECT_EQ(queue.num_running(), 1) << "c has the room of one, the other one is free, too";
}

TEST(BoundedQueueSilenceTest, PopThatWaitsGivesTheRoomOfTheSilentToWhoWaits) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(1, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  std::promise<void> resumed;
  const auto parked = queue.Join();
  ASSERT_TRUE(queue.Park([&resumed] { resumed.set_value(); }, parked));
  auto popped = std::async(std::launch::async, [&queue] { return queue.Take(1, Clock::now() + kPatience); });
  queue.FallSilent('a', milliseconds(0));
  ASSERT_TRUE(IsKept(resumed.get_future())) << "Pop wakes when the time is over, without any event";
  std::vector<int> items{1};
  ASSERT_TRUE(queue.Push(items, parked));
  EXPECT_TRUE(popped.get());
}

TEST(BoundedQueueSilenceTest, WhoIsBackGoesOnWhileThereIsRoom) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  queue.Resume();
  EXPECT_EQ(queue.num_running(), 0);
  EXPECT_TRUE(queue.GoOn('a'));
  EXPECT_EQ(queue.num_running(), 1);
}

TEST(BoundedQueueSilenceTest, WhoIsBackWithoutRoomIsNextAheadOfThoseWhoBegin) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(4, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  ASSERT_TRUE(queue.Begin('b'));
  ASSERT_FALSE(queue.Begin('c'));
  EXPECT_FALSE(queue.GoOn('a')) << "its room is b's";
  ASSERT_FALSE(queue.Begin('d'));
  queue.Deliver('b');
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.resumed, "a");
  queue.Deliver('a');
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.resumed, "ac");
}

TEST(BoundedQueueSilenceTest, WhatIsPushedWithoutRoomWaitsForIt) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  ASSERT_TRUE(queue.Begin('b'));
  queue.Deliver('a');
  queue.End('a');
  EXPECT_EQ(queue.size(), 0) << "the room is b's";
  queue.Deliver('b');
  EXPECT_EQ(queue.size(), 1);
  ASSERT_FALSE(queue.Begin('b'));
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.size(), 1) << "now there is room for it";
  EXPECT_EQ(queue.resumed, "") << "it was made before b's next";
  ASSERT_TRUE(queue.Take(1));
  EXPECT_EQ(queue.resumed, "b");
}

TEST(BoundedQueueSilenceTest, CloseReturnsWhatWasOwed) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(2, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  ASSERT_TRUE(queue.Begin('b'));
  queue.Deliver('a');
  EXPECT_EQ(queue.Close().size(), 1);
}

TEST(BoundedQueueSilenceTest, SilentProducerThatLeavesLeavesNothingBehind) {
  ParkingQueue queue({1, 1});
  queue.JoinMany(3, 1);
  ASSERT_TRUE(queue.Begin('a'));
  queue.TakeStep('a', kStep);
  queue.FallSilent('a', kFrozen);
  ASSERT_TRUE(queue.Begin('b'));
  ASSERT_FALSE(queue.GoOn('a'));
  queue.End('a');
  EXPECT_EQ(queue.num_parked(), 0);
  queue.End('b');
  EXPECT_EQ(queue.num_running(), 0);
  EXPECT_TRUE(queue.Begin('c'));
}

// A stream with steps that take a thousand times as long as those of the others.
TEST(BoundedQueueSilenceTest, ProducerThatIsSilentAtEveryStepGoesOnNevertheless) {
  ParkingQueue queue({2, 2});
  queue.JoinMany(4, 1);
  std::string ready = "bcd";
  ASSERT_TRUE(queue.Begin('b'));
  for (int i = 0; i < 100; ++i) queue.TakeStep('b', kStep);
  queue.DeliverSome('b', 0);
  ASSERT_TRUE(queue.Begin('a'));
  for (int step = 0; step < 20; ++step) {
    queue.FallSilent('a', kFrozen);
    queue.Resume();
    bool goes_on = queue.GoOn('a');
    for (int batch = 0; batch < 4 && !goes_on; ++batch) {
      for (const char name : std::exchange(ready, "")) {
        if (queue.Begin(name)) queue.resumed += name;
      }
      for (const char name : std::exchange(queue.resumed, "")) {
        if (name == 'a') {
          goes_on = true;
          continue;
        }
        queue.Deliver(name);
        ready += name;
      }
      queue.Take(1);
    }
    ASSERT_TRUE(goes_on) << "step " << step;
  }
}

TEST(BoundedQueueSilenceTest, WhatWaitsAndWhatRunsKeepsToTheCapacityWhoeverFreezesAndThaws) {
  constexpr std::size_t kProducers = 40;
  constexpr std::size_t kSize = 2;
  constexpr std::size_t kCapacity = 16;
  ParkingQueue queue({kCapacity, kCapacity});
  enum class Life { kIdle, kRunning, kParked, kFrozen };
  std::vector<Life> lives(kProducers, Life::kIdle);
  std::vector<Places::Producer> names;
  std::mt19937 random(1);
  for (std::size_t i = 0; i < kProducers; ++i) names.push_back(queue.Join(0, kSize));
  const auto park = [&](std::size_t i) {
    const bool waits = queue.Park([&lives, i] { lives[i] = Life::kRunning; }, names[i]);
    lives[i] = waits ? Life::kParked : Life::kRunning;
  };
  const auto step = [&](std::size_t i, int count) {
    for (int taken = 0; taken < count; ++taken) {
      queue.Await(names[i], Clock::now() - kStep);
      ASSERT_TRUE(queue.Return(names[i], Clock::now()));
    }
  };
  park(0);
  step(0, 100);
  std::size_t delivered = 0;
  for (int moment = 0; moment < 20'000; ++moment) {
    const std::size_t i = random() % kProducers;
    if (lives[i] == Life::kRunning) step(i, 8);
    if (lives[i] == Life::kIdle) {
      park(i);
    } else if (lives[i] == Life::kRunning && random() % 4 == 0) {
      queue.Await(names[i], Clock::now() - kFrozen);
      lives[i] = Life::kFrozen;
    } else if (lives[i] == Life::kFrozen && random() % 4 == 0) {
      if (queue.Return(names[i], Clock::now())) {
        lives[i] = Life::kRunning;
      } else {
        park(i);
      }
    } else if (lives[i] == Life::kRunning) {
      std::vector<int> items(kSize);
      ASSERT_TRUE(queue.Push(items, names[i]));
      lives[i] = Life::kIdle;
    }
    if (random() % 8 == 0 && queue.Take(4)) ++delivered;
    ASSERT_LT(queue.size() + queue.num_running(), kCapacity + kSize);
  }
  EXPECT_GT(delivered, 500);
}

class BoundedQueueSilentLaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    queue_.JoinMany(1, 1, 0);
    queue_.JoinMany(1, 1, 1);
    ASSERT_TRUE(queue_.Begin('a'));
    queue_.TakeStep('a', kStep);
    queue_.DeliverSome('a', 6);
  }

  ParkingQueue queue_{{6, 6}, {2, 1}};  // 'a' is in lane 0, 'b' in lane 1
};

TEST_F(BoundedQueueSilentLaneTest, TurnsOfALaneWhoseProducersAreSilentGoToTheOthers) {
  EXPECT_FALSE(queue_.Take(3)) << "b is waited for";
  queue_.FallSilent('b', kFrozen);
  EXPECT_TRUE(queue_.Take(3)) << "b has not made a step yet: a shows what one takes";
  EXPECT_TRUE(queue_.GoOn('b'));
  EXPECT_FALSE(queue_.Take(3)) << "it is back, and waited for";
}

TEST_F(BoundedQueueSilentLaneTest, LaneThatWasHeardFromAMomentAgoIsWaitedFor) {
  ASSERT_TRUE(queue_.Begin('b'));
  queue_.TakeStep('b', kStep);
  queue_.FallSilent('b', kFrozen);
  queue_.Resume();
  EXPECT_EQ(queue_.num_running(), 0) << "its room is free";
  EXPECT_FALSE(queue_.Take(3)) << "its turns are not";
}

TEST_F(BoundedQueueSilentLaneTest, LaneWithOneProducerThatIsNotSilentIsWaitedFor) {
  queue_.JoinMany(1, 1, 1);
  queue_.FallSilent('b', kFrozen);
  EXPECT_FALSE(queue_.Take(3)) << "c may bring the item";
  queue_.DeliverSome('c', 1);
  EXPECT_TRUE(queue_.Take(3));
}

TEST_F(BoundedQueueSilentLaneTest, SlowLaneIsWaitedForHoweverFastTheOthersAre) {
  ASSERT_TRUE(queue_.Begin('b'));
  queue_.TakeStep('b', seconds(20));
  queue_.FallSilent('b', seconds(30));
  EXPECT_FALSE(queue_.Take(3));
}

TEST_F(BoundedQueueSilentLaneTest, LaneIsSilentWhenTheLastWhoIsHeardFromLeaves) {
  queue_.JoinMany(1, 1, 1);
  queue_.FallSilent('b', kFrozen);
  EXPECT_FALSE(queue_.Take(3));
  queue_.End('c');
  EXPECT_TRUE(queue_.Take(3));
}

TEST_F(BoundedQueueSilentLaneTest, PopThatWaitsForASilentLaneGoesOnWithoutIt) {
  auto popped = std::async(std::launch::async, [this] { return queue_.Take(3, Clock::now() + kPatience); });
  queue_.FallSilent('b', milliseconds(0));
  EXPECT_TRUE(popped.get());
}

}  // namespace
}  // namespace kubebeast
