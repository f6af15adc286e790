#include "rollouts/rollout_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "testing/rollout_test_util.h"

namespace kubebeast {
namespace {

class RolloutQueueTest : public ::testing::Test {
 protected:
  // Returns an unroll of two environments; if `restless`, each row of environment 1 begins an episode.
  static std::shared_ptr<const Unroll> MakeUnroll(std::size_t steps, Unroll::End end, bool restless = false,
                                                  std::int64_t policy_version = 1) {
    const auto outputs = Think({1, 2}, policy_version);
    const auto unroll = std::make_shared<Unroll>();
    unroll->envs = {.first = 0, .count = 2};
    unroll->end = end;
    for (std::size_t t = 0; t <= steps; ++t) {
      const std::uint8_t final = restless ? 1 : 0;
      unroll->steps.push_back({MakeObservation(t, {.is_first = {0, 0}, .terminated = {0, final}}), outputs, 0});
    }
    return unroll;
  }

  void ExpectBooks(std::int64_t in_flight, std::int64_t delivered, std::int64_t partial, std::int64_t closed) {
    EXPECT_EQ(stats_->steps_in_flight, in_flight);
    EXPECT_EQ(stats_->steps_delivered, delivered);
    EXPECT_EQ(stats_->steps_dropped_partial, partial);
    EXPECT_EQ(stats_->steps_dropped_close, closed);
    EXPECT_EQ(stats_->steps_sampled, in_flight + delivered + partial + closed + stats_->steps_dropped_stale);
  }

  const std::shared_ptr<Stats> stats_ = std::make_shared<Stats>();
  RolloutQueue queue_{{4, 4}, 3, stats_};
  const RolloutQueue::Producer stream_ = queue_.Join(0, 2);
};

TEST_F(RolloutQueueTest, EnvironmentsOfAnUnrollAreDeliveredOneByOne) {
  stats_->CountSampled(10);
  ExpectBooks(10, 0, 0, 0);
  queue_.Deliver(MakeUnroll(5, Unroll::End::kNone), stream_);
  EXPECT_EQ(queue_.size(), 2);
  EXPECT_EQ(stats_->rollouts_completed, 2);
  ExpectBooks(10, 0, 0, 0);
  const auto popped = queue_.Pop(1, Clock::now());
  ASSERT_TRUE(popped.ok());
  EXPECT_EQ(popped->front().env, 0);
  EXPECT_EQ(popped->front().num_valid, 5);
  ExpectBooks(5, 5, 0, 0);
}

TEST_F(RolloutQueueTest, UnrollWithoutATransitionIsLeftOut) {
  stats_->CountSampled(1);
  queue_.Deliver(MakeUnroll(1, Unroll::End::kNone, /*restless=*/true), stream_);
  EXPECT_EQ(queue_.size(), 1);
  ExpectBooks(1, 0, 0, 0);
}

TEST_F(RolloutQueueTest, PartialUnrollShorterThanTheMinimumIsDropped) {
  stats_->CountSampled(4);
  queue_.Deliver(MakeUnroll(2, Unroll::End::kTruncated), stream_);
  EXPECT_EQ(queue_.size(), 0);
  ExpectBooks(0, 0, 4, 0);
}

TEST_F(RolloutQueueTest, PartialUnrollOfTheMinimumIsDelivered) {
  stats_->CountSampled(3);
  queue_.Deliver(MakeUnroll(3, Unroll::End::kTruncated, /*restless=*/true), stream_);
  EXPECT_EQ(queue_.size(), 1) << "environment 1 has no transition at all";
  EXPECT_EQ(stats_->rollouts_partial, 1);
  ExpectBooks(3, 0, 0, 0);
}

TEST_F(RolloutQueueTest, UnrollsOfOldWeightsAreDroppedAndTheirProducersResumed) {
  stats_->CountSampled(40);
  bool resumed = false;
  for (const std::int64_t version : {7, 9, 8})
    queue_.Deliver(MakeUnroll(5, Unroll::End::kNone, false, version), stream_);
  ASSERT_TRUE(queue_.Park([&resumed] { resumed = true; }, stream_));
  const auto popped = queue_.Pop(2, Clock::now(), 9);
  ASSERT_TRUE(popped.ok());
  EXPECT_EQ(popped->front().unroll->policy_version(), 9);
  EXPECT_TRUE(resumed);
  queue_.Deliver(MakeUnroll(5, Unroll::End::kNone, false, 8), stream_);
  EXPECT_EQ(queue_.size(), 0) << "nor is one taken that comes later";
  EXPECT_EQ(stats_->steps_dropped_stale, 30);
  EXPECT_EQ(stats_->rollouts_dropped_stale, 6);
  ExpectBooks(0, 10, 0, 0);
}

TEST_F(RolloutQueueTest, CloseDropsWhatIsQueuedAndWhatComesLater) {
  stats_->CountSampled(14);
  queue_.Deliver(MakeUnroll(5, Unroll::End::kNone), stream_);
  queue_.Close();
  ExpectBooks(4, 0, 0, 10);
  queue_.Deliver(MakeUnroll(2, Unroll::End::kTruncated), stream_);
  queue_.Close();
  ExpectBooks(0, 0, 0, 14);
  EXPECT_EQ(queue_.Pop(1, Clock::now()).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RolloutQueueTest, UnrollOfOldWeightsThatComesWhileTheLearnerAsksIsNotTaken) {
  constexpr std::int64_t kVersions = 20'000;
  std::atomic<std::int64_t> oldest = 1;
  std::thread producer([&] {
    for (std::int64_t version = 1; version <= kVersions; version = oldest) {
      queue_.Deliver(MakeUnroll(5, Unroll::End::kNone, false, version), stream_);
      oldest.wait(version);  // one unroll per version: an endless producer would starve the learner of the lock
    }
  });
  while (oldest <= kVersions) {
    const auto popped = queue_.Pop(1, Clock::now(), oldest);
    if (popped.ok()) {
      EXPECT_GE(popped->front().unroll->policy_version(), oldest);
    }
    ++oldest;
    oldest.notify_one();
  }
  producer.join();
}

}  // namespace
}  // namespace kubebeast
