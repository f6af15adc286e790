#include "access/host_rates.h"

#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

using std::chrono::seconds;

const Clock::time_point kFirst{};

TEST(HostRatesTest, EachHostHasItsOwn) {
  HostRates rates(2, 1);
  EXPECT_TRUE(rates.Take("10.0.0.7", kFirst));
  EXPECT_TRUE(rates.Take("10.0.0.7", kFirst));
  EXPECT_FALSE(rates.Take("10.0.0.7", kFirst));
  EXPECT_TRUE(rates.Take("10.0.0.8", kFirst));
  EXPECT_TRUE(rates.Take("10.0.0.7", kFirst + seconds(1)));
}

TEST(HostRatesTest, LocalPeersHaveNone) {
  HostRates rates(1, 1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(rates.Take("", kFirst));
}

TEST(HostRatesTest, HostsAreRememberedUpToABound) {
  HostRates rates(1, 1);
  for (std::size_t i = 0; i < HostRates::kMaxHosts; ++i) EXPECT_TRUE(rates.Take(std::to_string(i), kFirst));
  EXPECT_FALSE(rates.Take("late", kFirst)) << "there is no room";
  EXPECT_TRUE(rates.Take("late", kFirst + seconds(1))) << "the others are quiet";
}

}  // namespace
}  // namespace kubebeast
