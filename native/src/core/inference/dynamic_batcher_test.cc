#include "inference/dynamic_batcher.h"

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

using std::chrono::hours;
using std::chrono::milliseconds;
using Items = std::vector<std::string>;
using Batcher = DynamicBatcher<std::string>;
// Producers are only names: addresses of these.
constexpr char kProducers[8] = {};
const void* Producer(int i) { return &kProducers[i]; }

class DynamicBatcherTest : public ::testing::Test {
 protected:
  // Makes a batcher with three members; the default timeout is never reached.
  static std::unique_ptr<Batcher> Make(std::size_t min_rows, std::size_t max_rows,
                                       std::chrono::milliseconds timeout = hours(1)) {
    auto batcher = std::make_unique<Batcher>(BatchingOptions{min_rows, max_rows, timeout});
    for (int i = 0; i < 3; ++i) batcher->Join(Producer(i));
    return batcher;
  }
};

TEST_F(DynamicBatcherTest, GivesOutABatchAsSoonAsMinRowsWait) {
  const auto batcher = Make(4, 100);
  batcher->Push(Producer(0), 3, "a");
  EXPECT_EQ(batcher->Pop(Clock::now()).status().code(), absl::StatusCode::kDeadlineExceeded);
  batcher->Push(Producer(1), 1, "b");
  const auto batch = batcher->Pop(Clock::now());
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->items, (Items{"a", "b"}));
  EXPECT_EQ(batch->num_rows, 4);
  EXPECT_EQ(batch->reason, FlushReason::kReady);
  EXPECT_EQ(batcher->rows_waiting(), 0);
}

TEST_F(DynamicBatcherTest, HoldsWholeItemsUpToMaxRows) {
  const auto batcher = Make(1, 5);
  for (int i = 0; i < 3; ++i) batcher->Push(Producer(i), 2, std::string(1, static_cast<char>('a' + i)));
  EXPECT_EQ(batcher->Pop(Clock::now())->items, (Items{"a", "b"}));
  EXPECT_EQ(batcher->Pop(Clock::now())->items, (Items{"c"}));
}

TEST_F(DynamicBatcherTest, ItemLargerThanMaxRowsGoesAlone) {
  const auto batcher = Make(1, 4);
  batcher->Push(Producer(0), 10, "large");
  batcher->Push(Producer(1), 1, "small");
  EXPECT_EQ(batcher->Pop(Clock::now())->items, (Items{"large"}));
  EXPECT_EQ(batcher->Pop(Clock::now())->items, (Items{"small"}));
}

TEST_F(DynamicBatcherTest, GivesOutFewerRowsWhenEveryMemberWaits) {
  const auto batcher = Make(100, 100);
  for (int i = 0; i < 3; ++i) batcher->Push(Producer(i), 1, "x");
  const auto batch = batcher->Pop(Clock::now());
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->num_rows, 3);
  EXPECT_EQ(batch->reason, FlushReason::kAll);
}

TEST_F(DynamicBatcherTest, MemberWhoLeavesIsNotWaitedFor) {
  for (int round = 0; round < 20; ++round) {  // Leave comes before Pop waits, or after
    const auto batcher = Make(100, 100);
    batcher->Push(Producer(0), 1, "a");
    batcher->Push(Producer(1), 1, "b");
    std::promise<void> entered;
    auto popped = std::async(std::launch::async, [&batcher, &entered] {
      entered.set_value();
      return batcher->Pop(Clock::now() + kPatience);
    });
    entered.get_future().wait();
    batcher->Leave(Producer(2));
    const auto batch = popped.get();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->items, (Items{"a", "b"}));
    EXPECT_EQ(batch->reason, FlushReason::kAll);
  }
}

TEST_F(DynamicBatcherTest, MemberWhoLeavesTakesItsItemAlong) {
  const auto batcher = Make(2, 100);
  batcher->Push(Producer(0), 2, "dead");
  batcher->Leave(Producer(0));
  EXPECT_EQ(batcher->rows_waiting(), 0);
  batcher->Push(Producer(1), 2, "alive");
  EXPECT_EQ(batcher->Pop(Clock::now())->items, (Items{"alive"}));
}

TEST_F(DynamicBatcherTest, GivesOutFewerRowsWhenTheOldestHasWaitedForTheTimeout) {
  const auto batcher = Make(100, 100, milliseconds(1));
  auto popped = std::async(std::launch::async, [&batcher] { return batcher->Pop(Clock::now() + kPatience); });
  batcher->Push(Producer(0), 1, "a");
  const auto batch = popped.get();
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->reason, FlushReason::kTimeout);
}

TEST_F(DynamicBatcherTest, ItemWakesAPopThatHasStoppedLookingForOne) {
  for (int round = 0; round < 20; ++round) {  // Push comes before Pop waits for long, or after
    const auto batcher = Make(100, 100, milliseconds(0));
    std::promise<void> entered;
    auto popped = std::async(std::launch::async, [&batcher, &entered] {
      entered.set_value();
      return batcher->Pop(Clock::now() + kPatience);
    });
    entered.get_future().wait();
    batcher->Push(Producer(0), 1, "a");
    const auto batch = popped.get();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->reason, FlushReason::kTimeout);
  }
}

TEST_F(DynamicBatcherTest, ItemIsLeftToOthersByAPopThatEndsBeforeItsTimeout) {
  for (int round = 0; round < 20; ++round) {  // in either order
    const auto batcher = Make(100, 100, milliseconds(5));
    auto patient = std::async(std::launch::async, [&batcher] { return batcher->Pop(Clock::now() + kPatience); });
    auto hasty = std::async(std::launch::async, [&batcher] { return batcher->Pop(Clock::now() + milliseconds(1)); });
    batcher->Push(Producer(0), 1, "a");
    const bool hasty_took_it = hasty.get().ok();
    if (hasty_took_it) batcher->Close();
    EXPECT_NE(patient.get().ok(), hasty_took_it);
  }
}

TEST_F(DynamicBatcherTest, CloseWakesEveryPopAndDropsWhatWaits) {
  const auto batcher = Make(100, 100);
  std::vector<std::future<absl::StatusCode>> waiters(4);
  for (auto& waiter : waiters) {
    waiter =
        std::async(std::launch::async, [&batcher] { return batcher->Pop(Clock::now() + kPatience).status().code(); });
  }
  batcher->Push(Producer(0), 1, "a");
  batcher->Close();
  for (auto& waiter : waiters) EXPECT_EQ(waiter.get(), absl::StatusCode::kCancelled);
  batcher->Push(Producer(1), 1, "b");
  EXPECT_EQ(batcher->rows_waiting(), 0);
  batcher->Close();
}

TEST_F(DynamicBatcherTest, ManyProducersAndConsumersAnswerEveryRowOnce) {
  constexpr int kActors = 16;
  constexpr int kSteps = 100;
  constexpr int kConsumers = 8;
  struct Call {
    std::promise<void> answered;
  };
  DynamicBatcher<std::shared_ptr<Call>> batcher({5, 8, milliseconds(1)});
  std::atomic<std::size_t> rows = 0;
  std::vector<std::thread> consumers(kConsumers);
  for (std::thread& consumer : consumers) {
    consumer = std::thread([&] {
      for (;;) {
        const auto batch = batcher.Pop(Clock::now() + kPatience);
        if (!batch.ok()) return;
        rows += batch->num_rows;
        EXPECT_LE(batch->num_rows, 8);
        for (const auto& call : batch->items) call->answered.set_value();
      }
    });
  }
  std::vector<std::thread> producers(kActors);
  for (std::thread& producer : producers) {
    producer = std::thread([&batcher] {
      const char self = 0;
      batcher.Join(&self);
      for (int step = 0; step < kSteps; ++step) {
        const auto call = std::make_shared<Call>();
        batcher.Push(&self, 1, call);
        ASSERT_TRUE(IsKept(call->answered.get_future()));
      }
      batcher.Leave(&self);
    });
  }
  for (std::thread& thread : producers) thread.join();
  batcher.Close();
  for (std::thread& thread : consumers) thread.join();
  EXPECT_EQ(rows, kActors * kSteps);
}

}  // namespace
}  // namespace kubebeast
