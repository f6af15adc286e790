#include "rollouts/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "testing/test_patience.h"

namespace kubebeast {
namespace {

using Items = std::vector<int>;
using Queue = BoundedQueue<int>;

void Fill(Queue& queue, std::vector<int> items) { ASSERT_TRUE(queue.Push(items)); }

absl::StatusOr<Items> Pop(Queue& queue, std::size_t count, Clock::time_point deadline) {
  Items unwanted;
  return queue.Pop(count, deadline, [](int) { return false; }, unwanted);
}

TEST(BoundedQueueTest, PopTakesTheOldestItems) {
  Queue queue(4);
  Fill(queue, {1, 2});
  Fill(queue, {3});
  EXPECT_EQ(*Pop(queue, 2, Clock::now()), (Items{1, 2}));
  EXPECT_EQ(queue.size(), 1);
}

TEST(BoundedQueueTest, PopTakesNothingWhenThereAreTooFewAtTheDeadline) {
  Queue queue(4);
  Fill(queue, {1});
  EXPECT_EQ(Pop(queue, 2, Clock::now()).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(queue.size(), 1);
}

TEST(BoundedQueueTest, PopWaitsForPush) {
  Queue queue(4);
  auto popped = std::async(std::launch::async, [&queue] { return Pop(queue, 2, Clock::now() + kPatience); });
  Fill(queue, {1});
  Fill(queue, {2});
  EXPECT_EQ(*popped.get(), (Items{1, 2}));
}

TEST(BoundedQueueTest, PushNeverBlocksBeyondCapacity) {
  Queue queue(1);
  Fill(queue, {1, 2, 3});
  EXPECT_EQ(queue.size(), 3);
}

TEST(BoundedQueueTest, ParkTellsProducersToGoOnBelowCapacity) {
  Queue queue(2);
  Fill(queue, {1});
  EXPECT_FALSE(queue.Park([] {}).has_value());
  EXPECT_EQ(queue.num_parked(), 0);
}

TEST(BoundedQueueTest, ParkedProducersResumeInOrderWhenThereIsRoom) {
  Queue queue(2);
  Fill(queue, {1, 2, 3});
  std::string resumed;
  ASSERT_TRUE(queue.Park([&resumed] { resumed.push_back('a'); }).has_value());
  ASSERT_TRUE(queue.Park([&resumed] { resumed.push_back('b'); }).has_value());

  ASSERT_TRUE(Pop(queue, 1, Clock::now()).ok());
  EXPECT_EQ(resumed, "") << "two items are left: the queue is still full";
  ASSERT_TRUE(Pop(queue, 1, Clock::now()).ok());
  EXPECT_EQ(resumed, "ab");
  EXPECT_EQ(queue.num_parked(), 0);
}

TEST(BoundedQueueTest, ResumedProducerMayUseTheQueue) {
  Queue queue(1);
  Fill(queue, {1});
  ASSERT_TRUE(queue.Park([&queue] { Fill(queue, {2}); }).has_value());
  ASSERT_TRUE(Pop(queue, 1, Clock::now()).ok());
  EXPECT_EQ(*Pop(queue, 1, Clock::now()), (Items{2}));
}

TEST(BoundedQueueTest, CancelledProducerIsNotResumed) {
  Queue queue(1);
  Fill(queue, {1});
  bool resumed = false;
  const auto ticket = queue.Park([&resumed] { resumed = true; });
  ASSERT_TRUE(ticket.has_value());
  queue.Cancel(*ticket);
  ASSERT_TRUE(Pop(queue, 1, Clock::now()).ok());
  EXPECT_FALSE(resumed);
}

TEST(BoundedQueueTest, CloseWakesEveryPop) {
  Queue queue(4);
  std::vector<std::future<absl::StatusCode>> waiters(4);
  for (auto& waiter : waiters) {
    waiter =
        std::async(std::launch::async, [&queue] { return Pop(queue, 1, Clock::now() + kPatience).status().code(); });
  }
  queue.Close();
  for (auto& waiter : waiters) EXPECT_EQ(waiter.get(), absl::StatusCode::kCancelled);
}

TEST(BoundedQueueTest, CloseReturnsWhatNobodyTookOnce) {
  Queue queue(1);
  Fill(queue, {1, 2});
  bool resumed = false;
  ASSERT_TRUE(queue.Park([&resumed] { resumed = true; }).has_value());
  EXPECT_EQ(queue.Close(), (Items{1, 2}));
  EXPECT_EQ(queue.Close(), Items());
  EXPECT_FALSE(resumed);
}

TEST(BoundedQueueTest, PushAfterCloseLeavesTheItems) {
  Queue queue(1);
  queue.Close();
  std::vector<int> items{1};
  EXPECT_FALSE(queue.Push(items));
  EXPECT_EQ(items, (Items{1}));
  EXPECT_FALSE(queue.Park([] {}).has_value());
}

TEST(BoundedQueueTest, ManyProducersAndConsumersLoseNothing) {
  constexpr int kProducers = 16;
  constexpr int kConsumers = 8;
  constexpr int kItems = 100;
  Queue queue(4);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> threads;
  threads.reserve(kConsumers + kProducers);
  for (int i = 0; i < kConsumers; ++i) {
    threads.emplace_back([&] {
      for (int taken = 0; taken < kProducers * kItems / kConsumers; taken += 2) {
        const auto items = Pop(queue, 2, Clock::now() + kPatience);
        ASSERT_TRUE(items.ok()) << items.status();
        sum += items->at(0) + items->at(1);
      }
    });
  }
  for (int i = 0; i < kProducers; ++i) {
    threads.emplace_back([&queue] {
      for (int item = 1; item <= kItems; ++item) {
        const auto room = std::make_shared<std::promise<void>>();
        if (queue.Park([room] { room->set_value(); }).has_value()) {
          ASSERT_TRUE(IsKept(room->get_future()));
        }
        Fill(queue, {item});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kProducers * kItems * (kItems + 1) / 2);
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.num_parked(), 0);
}

}  // namespace
}  // namespace kubebeast
