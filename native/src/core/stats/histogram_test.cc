#include "stats/histogram.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace kubebeast {
namespace {

constexpr std::array<double, 3> kBounds{1, 10, 100};

TEST(HistogramTest, ValueFallsIntoTheFirstBucketThatHoldsIt) {
  Histogram histogram(kBounds);
  for (const double value : {0.0, 1.0, 1.5, 10.0, 100.5}) histogram.Observe(value);
  const Histogram::Snapshot taken = histogram.Take();
  EXPECT_EQ(taken.bounds, (std::vector<double>{1, 10, 100}));
  EXPECT_EQ(taken.counts, (std::vector<std::int64_t>{2, 2, 0, 1}));
  EXPECT_DOUBLE_EQ(taken.sum, 113.0);
}

TEST(HistogramTest, TimesAreSeconds) {
  Histogram histogram(kSecondsBounds);
  histogram.Observe(std::chrono::milliseconds(1500));
  EXPECT_DOUBLE_EQ(histogram.sum(), 1.5);
}

TEST(HistogramTest, NothingIsLostBetweenThreads) {
  constexpr int kValues = 10'000;
  Histogram histogram(kRowsBounds);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&histogram] {
      for (int value = 0; value < kValues; ++value) histogram.Observe(1.0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Histogram::Snapshot taken = histogram.Take();
  EXPECT_EQ(std::accumulate(taken.counts.begin(), taken.counts.end(), std::int64_t{0}), 4 * kValues);
  EXPECT_DOUBLE_EQ(taken.sum, 4.0 * kValues);
}

TEST(HistogramTest, BoundsAscend) {
  EXPECT_TRUE(std::ranges::is_sorted(kSecondsBounds));
  EXPECT_TRUE(std::ranges::is_sorted(kRowsBounds));
}

}  // namespace
}  // namespace kubebeast
