#include "queues/fair_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kubebeast {
namespace {

// Returns the number of turns of each lane among the next `turns`.
std::vector<std::size_t> Count(FairShares& shares, std::size_t turns, const std::vector<bool>& takes_part) {
  std::vector<std::size_t> counts(shares.num_lanes());
  for (std::size_t i = 0; i < turns; ++i) {
    const auto lane = shares.Next(takes_part);
    if (lane.has_value()) ++counts[*lane];
  }
  return counts;
}

std::vector<bool> EveryLane(const FairShares& shares) { return std::vector<bool>(shares.num_lanes(), true); }

TEST(FairSharesTest, LanesHaveTurnsByTheirWeights) {
  FairShares shares({2, 1, 0.5});
  EXPECT_EQ(Count(shares, 7, EveryLane(shares)), (std::vector<std::size_t>{4, 2, 1}));
  EXPECT_EQ(Count(shares, 700, EveryLane(shares)), (std::vector<std::size_t>{400, 200, 100}));
}

TEST(FairSharesTest, OneLaneHasEveryTurn) {
  FairShares shares({3});
  EXPECT_EQ(Count(shares, 5, EveryLane(shares)), (std::vector<std::size_t>{5}));
}

TEST(FairSharesTest, NobodysTurnWhereNoneTakesPart) {
  FairShares shares({1, 1});
  EXPECT_FALSE(shares.Next({false, false}).has_value());
  EXPECT_EQ(shares.Next(EveryLane(shares)), 0);
}

TEST(FairSharesTest, TurnsOfAnAbsentLaneGoToTheOthersAndAreNotMadeUpFor) {
  FairShares shares({1, 2, 1});
  Count(shares, 8, EveryLane(shares));
  EXPECT_EQ(Count(shares, 300, {true, true, false}), (std::vector<std::size_t>{100, 200, 0}));
  const auto counts = Count(shares, 400, EveryLane(shares));
  EXPECT_NEAR(static_cast<double>(counts[2]), 100, 1) << "neither more nor less than its share from now on";
  EXPECT_NEAR(static_cast<double>(counts[1]), 200, 1);
}

TEST(FairSharesTest, NoLaneHasMoreTurnsInARowThanMostOf) {
  const std::vector<double> weights{5, 1, 1, 0.3, 17};
  constexpr std::size_t kTurns = 8;
  FairShares shares(weights);
  std::vector<std::size_t> recent;
  for (int i = 0; i < 5000; ++i) {
    const auto next = shares.Next(EveryLane(shares));
    ASSERT_TRUE(next.has_value());
    recent.push_back(*next);
    if (recent.size() > kTurns) recent.erase(recent.begin());
    for (std::size_t lane = 0; lane < weights.size(); ++lane) {
      EXPECT_LE(std::count(recent.begin(), recent.end(), lane), shares.MostOf(lane, kTurns, EveryLane(shares)));
    }
  }
}

TEST(FairSharesTest, MostOfIsEveryTurnForALaneThatIsAlone) {
  const FairShares shares({1, 3});
  EXPECT_EQ(shares.MostOf(0, 8, {false, false}), 8);
  EXPECT_EQ(shares.MostOf(0, 8, EveryLane(shares)), 3) << "a quarter of nine, rounded up";
}

}  // namespace
}  // namespace kubebeast
