#include "stats/stream_clock.h"

#include <gtest/gtest.h>

namespace kubebeast {
namespace {

using std::chrono::seconds;
using State = StreamClock::State;

TEST(StreamClockTest, TimeInEachStateAddsUp) {
  const Clock::time_point start{};
  StreamClock clock(start);
  EXPECT_EQ(clock.Enter(State::kEnv, start + seconds(1)), seconds(1));
  EXPECT_EQ(clock.Enter(State::kInference, start + seconds(3)), seconds(2));
  EXPECT_EQ(clock.Enter(State::kEnv, start + seconds(4)), seconds(1));
  EXPECT_EQ(clock.state(), State::kEnv);

  const auto now = start + seconds(14);
  EXPECT_EQ(clock.Spent(State::kStarting, now), seconds(1));
  EXPECT_EQ(clock.Spent(State::kEnv, now), seconds(12)) << "the state that lasts counts until now";
  EXPECT_EQ(clock.Spent(State::kInference, now), seconds(1));
  EXPECT_EQ(clock.Spent(State::kParked, now), seconds(0));
}

}  // namespace
}  // namespace kubebeast
