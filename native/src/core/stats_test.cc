#include "stats.h"

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
  // All members are values but the mutex, which is the last one.
  EXPECT_EQ(names.size(), (sizeof(Stats) - sizeof(std::mutex)) / sizeof(Stats::Value));
  EXPECT_EQ(episodes, 7);
}

}  // namespace
}  // namespace kubebeast
