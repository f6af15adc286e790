#include "access/offences.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Clock::time_point kStart{};

TEST(OffencesTest, HostIsBlockedWhileItHasTooMany) {
  Offences offences(3, seconds(1));
  for (int i = 0; i < 3; ++i) offences.Add("10.0.0.7", kStart);
  EXPECT_FALSE(offences.Blocks("10.0.0.7", kStart));
  offences.Add("10.0.0.7", kStart);
  EXPECT_TRUE(offences.Blocks("10.0.0.7", kStart));
  EXPECT_FALSE(offences.Blocks("10.0.0.8", kStart)) << "others have nothing to do with it";
  EXPECT_TRUE(offences.Blocks("10.0.0.7", kStart + milliseconds(999)));
  EXPECT_FALSE(offences.Blocks("10.0.0.7", kStart + seconds(1))) << "one is forgiven";
}

TEST(OffencesTest, HostThatMendsItsWaysIsForgivenBeforeLong) {
  Offences offences(3, seconds(1));
  for (int i = 0; i < 10'000; ++i) offences.Add("10.0.0.7", kStart);
  EXPECT_TRUE(offences.Blocks("10.0.0.7", kStart + milliseconds(2'500)));
  EXPECT_FALSE(offences.Blocks("10.0.0.7", kStart + seconds(3)));
}

TEST(OffencesTest, HostsAreRememberedUpToABound) {
  Offences offences(1, seconds(1));
  for (std::size_t i = 0; i < Offences::kMaxHosts; ++i) offences.Add(std::to_string(i), kStart);
  for (int i = 0; i < 5; ++i) offences.Add("late", kStart);
  EXPECT_FALSE(offences.Blocks("late", kStart)) << "there is no room";
  for (int i = 0; i < 5; ++i) offences.Add("later", kStart + seconds(9));
  EXPECT_TRUE(offences.Blocks("later", kStart + seconds(9))) << "the others are forgiven";
}

TEST(OffencesTest, LocalPeersAndAPoolWithoutABoundBlockNobody) {
  Offences offences(1, seconds(1));
  Offences boundless(0, seconds(1));
  for (int i = 0; i < 5; ++i) {
    offences.Add(HostOfPeer("unix:/run/pool.sock"), kStart);
    boundless.Add("10.0.0.7", kStart);
  }
  EXPECT_FALSE(offences.Blocks("", kStart));
  EXPECT_FALSE(boundless.Blocks("10.0.0.7", kStart));
}

TEST(OffencesTest, PeersOfGrpcHaveAHost) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.7:4431"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfe80::1%5D:4431"), "fe80::1");
  EXPECT_EQ(HostOfPeer("ipv6:[::1]:4431"), "::1");
}

TEST(OffencesTest, OffencesAreKnownUntilTheyAreForgiven) {
  Offences offences(3, seconds(1));
  EXPECT_FALSE(offences.Has("10.0.0.7", kStart));
  offences.Add("10.0.0.7", kStart);
  EXPECT_TRUE(offences.Has("10.0.0.7", kStart));
  EXPECT_FALSE(offences.Has("10.0.0.7", kStart + seconds(1)));
}

TEST(OffencesTest, WrongSpecsAreNoOffence) {
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.max_offences = 1;
  });
  for (int i = 0; i < 5; ++i) {
    TestActor stranger(pool->address(), 1);
    v1::ActRequest hello = stranger.HelloMessage();
    hello.mutable_hello()->mutable_observation(0)->set_path("other");
    stranger.Send(hello);
    EXPECT_EQ(stranger.Status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
}

}  // namespace
}  // namespace kubebeast
