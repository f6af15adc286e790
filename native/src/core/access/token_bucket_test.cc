#include "access/token_bucket.h"

#include <gtest/gtest.h>

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Clock::time_point kFilled{};

TEST(TokenBucketTest, HoldsABurstAndGainsTheRate) {
  TokenBucket bucket(2, 4);
  EXPECT_TRUE(bucket.Take(kFilled));
  EXPECT_TRUE(bucket.Take(kFilled));
  EXPECT_FALSE(bucket.Take(kFilled));
  EXPECT_FALSE(bucket.Take(kFilled + milliseconds(249)));
  EXPECT_TRUE(bucket.Take(kFilled + milliseconds(250)));
  EXPECT_FALSE(bucket.IsFull(kFilled + milliseconds(500)));
  EXPECT_TRUE(bucket.IsFull(kFilled + seconds(9)));
  EXPECT_TRUE(bucket.Take(kFilled + seconds(9), 2)) << "never more than the burst";
  EXPECT_FALSE(bucket.Take(kFilled + seconds(9)));
}

TEST(TokenBucketTest, ChargeMayLeaveADebt) {
  TokenBucket bucket(2, 1, 4);
  for (int i = 0; i < 100; ++i) bucket.Charge(kFilled, 1);
  EXPECT_FALSE(bucket.Take(kFilled + milliseconds(4'900)));
  EXPECT_TRUE(bucket.Take(kFilled + milliseconds(5'100)));
}

TEST(TokenBucketTest, ClockOfAnotherThreadMayBeBehind) {
  TokenBucket bucket(1, 1);
  EXPECT_TRUE(bucket.Take(kFilled + seconds(1)));
  EXPECT_FALSE(bucket.Take(kFilled));
  EXPECT_TRUE(bucket.Take(kFilled + seconds(2)));
}

}  // namespace
}  // namespace kubebeast
