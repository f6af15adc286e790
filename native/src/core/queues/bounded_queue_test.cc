#include "queues/bounded_queue.h"

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

class Queue : public BoundedQueue<int> {
 public:
  explicit Queue(std::size_t capacity) : BoundedQueue({capacity, capacity}), filler_(Join()) {}

  // Pushes from a producer that does not call Park.
  void Fill(Items items) { ASSERT_TRUE(Push(items, filler_)); }

  absl::StatusOr<Items> Take(std::size_t count, Clock::time_point deadline = Clock::now()) {
    Items unwanted;
    return Pop(count, deadline, [](int) { return false; }, unwanted);
  }

 private:
  const Producer filler_;
};

TEST(BoundedQueueTest, PopTakesTheOldestItems) {
  Queue queue(4);
  queue.Fill({1, 2});
  queue.Fill({3});
  EXPECT_EQ(*queue.Take(2), (Items{1, 2}));
  EXPECT_EQ(queue.size(), 1);
}

TEST(BoundedQueueTest, PopTakesNothingWhenThereAreTooFewAtTheDeadline) {
  Queue queue(4);
  queue.Fill({1});
  EXPECT_EQ(queue.Take(2).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(queue.size(), 1);
}

TEST(BoundedQueueTest, PopWaitsForPush) {
  Queue queue(4);
  auto popped = std::async(std::launch::async, [&queue] { return queue.Take(2, Clock::now() + kPatience); });
  queue.Fill({1});
  queue.Fill({2});
  EXPECT_EQ(*popped.get(), (Items{1, 2}));
}

TEST(BoundedQueueTest, PushNeverBlocksBeyondCapacity) {
  Queue queue(1);
  queue.Fill({1, 2, 3});
  EXPECT_EQ(queue.size(), 3);
}

TEST(BoundedQueueTest, ResumedProducerMayUseTheQueue) {
  Queue queue(1);
  queue.Fill({1});
  const auto producer = queue.Join();
  ASSERT_TRUE(queue.Park([&queue] { queue.Fill({2}); }, producer));
  ASSERT_TRUE(queue.Take(1).ok());
  EXPECT_EQ(*queue.Take(1), (Items{2}));
}

TEST(BoundedQueueTest, CloseWakesEveryPop) {
  Queue queue(4);
  std::vector<std::future<absl::StatusCode>> waiters(4);
  for (auto& waiter : waiters) {
    waiter =
        std::async(std::launch::async, [&queue] { return queue.Take(1, Clock::now() + kPatience).status().code(); });
  }
  queue.Close();
  for (auto& waiter : waiters) EXPECT_EQ(waiter.get(), absl::StatusCode::kCancelled);
}

TEST(BoundedQueueTest, CloseReturnsWhatNobodyTookOnce) {
  Queue queue(1);
  queue.Fill({1, 2});
  const auto producer = queue.Join();
  ASSERT_TRUE(queue.Park([] { FAIL() << "resumed by Close"; }, producer));
  EXPECT_EQ(queue.Close(), (Items{1, 2}));
  EXPECT_EQ(queue.Close(), Items());
  queue.Resume();
  queue.Leave(producer);
}

TEST(BoundedQueueTest, PushAfterCloseLeavesTheItems) {
  Queue queue(1);
  const auto producer = queue.Join();
  queue.Close();
  Items items{1};
  EXPECT_FALSE(queue.Push(items, producer));
  EXPECT_EQ(items, (Items{1}));
  EXPECT_FALSE(queue.Park([] {}, producer));
}

TEST(BoundedQueueTest, ManyProducersAndConsumersLoseNothing) {
  constexpr int kProducers = 16;
  constexpr int kConsumers = 8;
  constexpr int kItems = 100;
  constexpr std::size_t kCapacity = 4;
  Queue queue(kCapacity);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> threads;
  threads.reserve(kConsumers + kProducers);
  for (int i = 0; i < kConsumers; ++i) {
    threads.emplace_back([&] {
      for (int taken = 0; taken < kProducers * kItems / kConsumers; taken += 2) {
        const auto items = queue.Take(2, Clock::now() + kPatience);
        ASSERT_TRUE(items.ok()) << items.status();
        sum += items->at(0) + items->at(1);
      }
    });
  }
  for (int i = 0; i < kProducers; ++i) {
    threads.emplace_back([&] {
      const auto producer = queue.Join();
      for (int item = 1; item <= kItems; ++item) {
        const auto room = std::make_shared<std::promise<void>>();
        if (queue.Park([room] { room->set_value(); }, producer)) {
          ASSERT_TRUE(IsKept(room->get_future()));
        }
        Items items{item};
        ASSERT_TRUE(queue.Push(items, producer));
        EXPECT_LE(queue.size(), kCapacity);
      }
      queue.Leave(producer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kProducers * kItems * (kItems + 1) / 2);
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.num_parked(), 0);
  EXPECT_EQ(queue.num_running(), 0);
}

}  // namespace
}  // namespace kubebeast
