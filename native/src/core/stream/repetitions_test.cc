#include "stream/repetitions.h"

#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

TEST(RepetitionsTest, TheFirstIsToldAndTheNextAreCountedUntilItIsTimeAgain) {
  Repetitions repetitions;
  const Clock::time_point start;
  EXPECT_EQ(repetitions.Count("a", start), 1);
  EXPECT_EQ(repetitions.Count("a", start), 0);
  EXPECT_EQ(repetitions.Count("b", start), 1);
  EXPECT_EQ(repetitions.Count("a", start + Repetitions::kTellEvery), 2);
  EXPECT_EQ(repetitions.Count("a", start + Repetitions::kTellEvery), 0);
}

TEST(RepetitionsTest, ManyDifferentThingsAreToldInTurns) {
  Repetitions repetitions;
  const Clock::time_point start;
  std::size_t num_told = 0;
  for (int i = 0; i < 10'000; ++i) num_told += repetitions.Count(std::to_string(i), start);
  EXPECT_EQ(num_told, Repetitions::kMaxTold);
  EXPECT_EQ(repetitions.Count("later", start + Repetitions::kTellEvery), 1);
}

}  // namespace
}  // namespace kubebeast
