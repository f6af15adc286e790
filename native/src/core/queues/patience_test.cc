#include "queues/patience.h"

#include <gtest/gtest.h>

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PatienceTest, EndlessUntilSomeLaneHasMadeAStep) {
  const Patience patience(2);
  EXPECT_EQ(patience.With(0, 1), Clock::duration::max());
}

TEST(PatienceTest, FourTimesAsLongAsTheLaneTakes) {
  Patience patience(1);
  patience.Note(0, 1, seconds(20));
  EXPECT_EQ(patience.With(0, 1), seconds(80));
  patience.Note(0, 1, seconds(10));
  EXPECT_EQ(patience.With(0, 1), seconds(60));
}

TEST(PatienceTest, NeverShorterThanAHiccup) {
  Patience patience(1);
  patience.Note(0, 1, milliseconds(1));
  EXPECT_EQ(patience.With(0, 1), Patience::kShortest);
}

TEST(PatienceTest, ShorterBesideAFrozenPeer) {
  Patience patience(1);
  patience.Note(0, 1, milliseconds(1));
  EXPECT_EQ(patience.With(0, 1, /*beside_frozen=*/true), Patience::kShortestBeside);
  patience.Note(0, 1, milliseconds(399));
  EXPECT_EQ(patience.With(0, 1, /*beside_frozen=*/true), milliseconds(800));
}

TEST(PatienceTest, GrowsWithTheEnvironmentsThatStepTogether) {
  Patience patience(1);
  patience.Note(0, 4, seconds(4));
  EXPECT_EQ(patience.With(0, 64), 64 * seconds(4));
}

TEST(PatienceTest, LaneWithoutAStepIsAsSlowAsTheSlowest) {
  Patience patience(3);
  patience.Note(0, 1, seconds(1));
  patience.Note(1, 1, seconds(5));
  EXPECT_EQ(patience.With(2, 1), seconds(20));
}

TEST(PatienceTest, FollowsALaneThatBecomesSlower) {
  Patience patience(1);
  for (int i = 0; i < 1000; ++i) patience.Note(0, 1, milliseconds(1));
  for (int i = 0; i < 1000; ++i) patience.Note(0, 1, seconds(10));
  EXPECT_GT(patience.With(0, 1), seconds(39));
}

TEST(PatienceTest, ThawedPeersChangeLittle) {
  Patience patience(1);
  for (int i = 0; i < 1000; ++i) patience.Note(0, 1, milliseconds(20));
  for (int i = 0; i < 8; ++i) patience.Note(0, 1, seconds(1000));
  EXPECT_LT(patience.With(0, 1), seconds(1));
}

}  // namespace
}  // namespace kubebeast
