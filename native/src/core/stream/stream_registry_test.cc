#include "stream/stream_registry.h"

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "testing/rollout_test_util.h"
#include "testing/test_patience.h"

namespace kubebeast {
namespace {

Hello MakeHello(std::uint32_t num_envs) {
  return {.env_server_id = "pod", .instance_id = "1", .num_envs = num_envs, .spec = RolloutSpec(), .compression = {}};
}

class StreamRegistryTest : public ::testing::Test {
 protected:
  StreamRegistry registry_{{.max_streams = 2, .max_envs = 5}, std::nullopt};
};

TEST_F(StreamRegistryTest, SlotsAreUniqueAndBounded) {
  std::set<std::int32_t> taken;
  for (const std::uint32_t num_envs : {3U, 2U}) {
    const auto slots = registry_.Admit(MakeHello(num_envs));
    ASSERT_TRUE(slots.ok());
    EXPECT_EQ(slots->size(), num_envs);
    taken.insert(slots->begin(), slots->end());
  }
  EXPECT_EQ(taken, (std::set<std::int32_t>{0, 1, 2, 3, 4}));
  const absl::Status status = registry_.Admit(MakeHello(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("num_envs 1 does not fit: 0 of 5"), absl::string_view::npos) << status;
}

// What is kept for each slot on a GPU grows with the largest one.
TEST_F(StreamRegistryTest, SlotsAreTheSmallestFreeOnes) {
  EXPECT_EQ(*registry_.Admit(MakeHello(2)), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(*registry_.Admit(MakeHello(2)), (std::vector<std::int32_t>{2, 3}));
  registry_.ReleaseSlots({1, 0});
  registry_.ReleaseSlots({3});
  EXPECT_EQ(*registry_.Admit(MakeHello(3)), (std::vector<std::int32_t>{0, 1, 3}));
}

TEST_F(StreamRegistryTest, ReleasedSlotsAreGivenOutAgain) {
  const auto slots = registry_.Admit(MakeHello(5));
  ASSERT_TRUE(slots.ok());
  registry_.ReleaseSlots({(*slots)[1], (*slots)[3]});
  const auto again = registry_.Admit(MakeHello(2));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::set<std::int32_t>(again->begin(), again->end()), (std::set<std::int32_t>{(*slots)[1], (*slots)[3]}));
}

TEST_F(StreamRegistryTest, FirstAcceptedHelloDecidesTheSpec) {
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now()).status().code(), absl::StatusCode::kDeadlineExceeded);
  Hello refused = MakeHello(6);
  refused.spec.observation.pop_back();
  EXPECT_FALSE(registry_.Admit(refused).ok()) << "too many environments";
  ASSERT_TRUE(registry_.Admit(MakeHello(1)).ok());
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now())->observation, RolloutSpec().observation);

  Hello other = MakeHello(1);
  other.spec.observation[1].shape = {3};
  EXPECT_EQ(registry_.Admit(other).status().code(), absl::StatusCode::kUnavailable) << "the first one is on trial";
  ASSERT_TRUE(registry_.Open(4, 2, 3).ok());
  const absl::Status status = registry_.Admit(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("pair"), absl::string_view::npos) << status;
}

TEST_F(StreamRegistryTest, RefusedSpecMakesRoomForTheNext) {
  Hello bomb = MakeHello(1);
  bomb.spec.action[0].num_categories = 1'000'000'000;
  ASSERT_TRUE(registry_.Admit(bomb).ok());
  const absl::StatusOr<EnvSpec> refused = registry_.Refuse("no model takes it");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->action, bomb.spec.action);
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now()).status().code(), absl::StatusCode::kDeadlineExceeded);
  const absl::Status again = registry_.Admit(bomb).status();
  EXPECT_EQ(again, absl::FailedPreconditionError("no model takes it")) << "without a further trial";
  ASSERT_TRUE(registry_.Admit(MakeHello(1)).ok());
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now())->action, RolloutSpec().action);
}

TEST_F(StreamRegistryTest, WhatIsExpectedOrOpenIsNotRefused) {
  StreamRegistry expecting({}, RolloutSpec());
  EXPECT_EQ(expecting.Refuse("no").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(registry_.Refuse("no").status().code(), absl::StatusCode::kFailedPrecondition) << "there is none yet";
  ASSERT_TRUE(registry_.Admit(MakeHello(1)).ok());
  ASSERT_TRUE(registry_.Open(4, 2, 3).ok());
  EXPECT_EQ(registry_.Refuse("no").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StreamRegistryTest, OnlyTheNewestRefusedSpecsAreRemembered) {
  Hello bomb = MakeHello(1);
  for (int i = 1; i <= 1000; ++i) {
    bomb.spec.action[0].num_categories = i;
    const auto slots = registry_.Admit(bomb);
    ASSERT_TRUE(slots.ok()) << slots.status();
    registry_.ReleaseSlots(*slots);
    ASSERT_TRUE(registry_.Refuse("no").ok());
  }
  EXPECT_FALSE(registry_.Admit(bomb).ok());
  bomb.spec.action[0].num_categories = 1;
  EXPECT_TRUE(registry_.Admit(bomb).ok());
}

TEST_F(StreamRegistryTest, ExpectedSpecIsThereFromTheStart) {
  StreamRegistry registry({}, RolloutSpec());
  EXPECT_EQ(registry.WaitEnvSpec(Clock::now())->env_id, "Counter-v0");
  Hello other = MakeHello(1);
  other.spec.action.pop_back();
  EXPECT_EQ(registry.Admit(other).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StreamRegistryTest, OnlyTheOpeningEnvironmentDecidesTheSpec) {
  StreamRegistry registry({}, std::nullopt, "Counter-v0");
  Hello other = MakeHello(1);
  other.spec.env_id = "Abacus-v0";
  const absl::Status status = registry.Admit(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << "it may join later";
  EXPECT_EQ(status.message(), "the run waits for its first env-server of Counter-v0, this one has Abacus-v0");
  EXPECT_EQ(registry.WaitEnvSpec(Clock::now()).status().code(), absl::StatusCode::kDeadlineExceeded);

  Hello same = MakeHello(1);
  same.spec.env_id = "games:vector/Counter-v0";
  ASSERT_TRUE(registry.Admit(same).ok()) << "another notation";
  EXPECT_EQ(registry.WaitEnvSpec(Clock::now())->env_id, "games:vector/Counter-v0");
  EXPECT_TRUE(registry.Admit(other).ok()) << "its shapes fit";
  other.spec.action.pop_back();
  EXPECT_EQ(registry.Admit(other).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StreamRegistryTest, AnExpectedSpecNeedsNoOpeningEnvironment) {
  StreamRegistry registry({}, RolloutSpec(), "Abacus-v0");
  EXPECT_TRUE(registry.Admit(MakeHello(1)).ok());
}

TEST_F(StreamRegistryTest, TheSpecKeepsTheFirstEnvConfig) {
  Hello hello = MakeHello(1);
  hello.spec.env_config = R"({"preset":"none"})";
  ASSERT_TRUE(registry_.Admit(hello).ok());
  hello.spec.env_config = R"({"preset":"atari-v4"})";
  ASSERT_TRUE(registry_.Admit(hello).ok()) << "only the leaves decide";
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now())->env_config, R"({"preset":"none"})");
}

TEST_F(StreamRegistryTest, WhatIsExpectedDecidesUnlessAnEnvServerDidBefore) {
  EnvSpec other = MakeHello(1).spec;
  other.env_id = "Other-v0";
  registry_.Expect(other);
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now())->env_id, "Other-v0");
  registry_.Expect(MakeHello(1).spec);
  EXPECT_EQ(registry_.WaitEnvSpec(Clock::now())->env_id, "Other-v0");
}

TEST_F(StreamRegistryTest, OpensOnceAndOnlyWithASpec) {
  EXPECT_EQ(registry_.Open(4, 2, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(registry_.shape(), nullptr);
  ASSERT_TRUE(registry_.Admit(MakeHello(1)).ok());
  ASSERT_TRUE(registry_.Open(4, 2, 3).ok());
  EXPECT_EQ(registry_.shape()->core_state_size, 3);
  EXPECT_EQ(registry_.Open(4, 2, 3).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StreamRegistryTest, CloseWakesWhoWaitsForTheSpec) {
  auto waiter = std::async(std::launch::async,
                           [this] { return registry_.WaitEnvSpec(Clock::now() + kPatience).status().code(); });
  registry_.Close();
  EXPECT_EQ(waiter.get(), absl::StatusCode::kCancelled);
  EXPECT_EQ(registry_.Admit(MakeHello(1)).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace kubebeast
