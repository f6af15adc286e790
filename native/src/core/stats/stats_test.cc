#include "stats/stats.h"

#include <gtest/gtest.h>

#include <set>

namespace kubebeast {
namespace {

TEST(StatsTest, SnapshotHoldsEveryValueUnderItsOwnName) {
  Stats stats;
  stats.episodes = 7;
  std::set<std::string_view> names;
  std::int64_t episodes = 0;
  for (const auto& [name, value] : stats.Snapshot()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    if (name == "episodes") episodes = value;
  }
  EXPECT_TRUE(names.contains("streams"));
  EXPECT_EQ(episodes, 7);
}

TEST(StatsTest, HistogramsAreTakenUnderTheirOwnNames) {
  Stats stats;
  stats.histograms.inference_batch_rows.Observe(3.0);
  std::set<std::string_view> names;
  for (const auto& [name, histogram] : stats.TakeHistograms()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(histogram.sum, name == "inference_batch_rows" ? 3.0 : 0.0) << name;
  }
  EXPECT_TRUE(names.contains("inference_batch_rows"));
}

}  // namespace
}  // namespace kubebeast
