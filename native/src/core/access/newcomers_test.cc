#include "access/newcomers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kubebeast {
namespace {

using Peers = std::vector<std::string>;
using std::chrono::seconds;

TEST(NewcomersTest, WhoDoesNotCallInTimeIsLateOnce) {
  Newcomers newcomers{seconds(10)};
  const Clock::time_point start;
  newcomers.Add("ipv4:10.0.0.7:1", start);
  newcomers.Add("ipv6:[::1]:2", start);
  newcomers.OnCall("ipv6:%5B::1%5D:2");
  newcomers.OnCall("ipv4:10.0.0.7:3");
  EXPECT_EQ(newcomers.TakeLate(start + seconds(9)), Peers());
  EXPECT_EQ(newcomers.TakeLate(start + seconds(10)), Peers({"ipv4:10.0.0.7:1"}));
  EXPECT_EQ(newcomers.TakeLate(start + seconds(20)), Peers());
}

TEST(NewcomersTest, FloodOfConnectionsIsNotKept) {
  Newcomers newcomers{seconds(10)};
  const Clock::time_point start;
  for (int port = 0; port < 60'000; ++port) newcomers.Add("ipv4:10.0.0.7:" + std::to_string(port), start);
  EXPECT_EQ(newcomers.TakeLate(start + seconds(10)).size(), Newcomers::kMaxConnections);
}

}  // namespace
}  // namespace kubebeast
