// Books of steps while streams come and go.
#include <atomic>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "pool/actor_pool.h"
#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

// Joins, takes a few steps and leaves in one of the possible ways.
void LiveOnce(const std::string& address, std::uint32_t first_env, std::mt19937& random) {
  TestActor actor(address, 1 + random() % 3, first_env);
  ASSERT_TRUE(actor.Join());
  for (unsigned steps = random() % 25; steps > 0; --steps) {
    if (!actor.Step()) return;  // the learner lost its batch
  }
  const v1::ActRequest garbage;
  switch (random() % 5) {
    case 0:
      actor.SendBye(v1::Bye::REASON_SHUTDOWN);
      actor.Finish();
      break;
    case 1:
      actor.SendBye(v1::Bye::REASON_TERMINATED);
      actor.Finish();
      break;
    case 2:
      actor.Finish();
      break;
    case 3:
      actor.Send(garbage);
      EXPECT_EQ(actor.Status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      break;
    default:
      actor.Vanish();
  }
}

TEST(ActorPoolChurnTest, BooksBalanceUnderChurn) {
  constexpr std::uint32_t kThreads = 16;
  constexpr int kLives = 12;
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.min_partial_steps = 3;
    options.max_queued_rollouts = 8;
    options.inference.min_rows = 8;
    options.inference.timeout = milliseconds(1);
  });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  auto delivered = std::async(std::launch::async, [&pool] {
    std::int64_t steps = 0;
    for (auto batch = pool->NextRollouts(kPatience); batch.ok(); batch = pool->NextRollouts(kPatience)) {
      steps += static_cast<std::int64_t>(batch->num_transitions);
    }
    return steps;
  });
  std::vector<std::future<void>> actors(kThreads);
  const TestLearner learner(*pool, 2);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    actors[i] = std::async(std::launch::async, [&pool, i] {
      std::mt19937 random(i);
      for (int life = 0; life < kLives; ++life) LiveOnce(pool->address(), 3 * i, random);
    });
  }
  for (auto& actor : actors) actor.get();
  EXPECT_TRUE(StatBecomes(*pool, "streams", 0));
  EXPECT_TRUE(BooksBalance(*pool));
  EXPECT_EQ(Stat(*pool, "streams_parked"), 0);
  EXPECT_EQ(Stat(*pool, "streams_accepted"), kThreads * kLives);
  EXPECT_EQ(
      Stat(*pool, "streams_ended_bye") + Stat(*pool, "streams_ended_disconnect") + Stat(*pool, "streams_ended_invalid"),
      kThreads * kLives);
  EXPECT_EQ(Stat(*pool, "envs"), 0);
  pool->Close(milliseconds(1000));
  EXPECT_EQ(Stat(*pool, "steps_delivered"), delivered.get());
  EXPECT_EQ(Stat(*pool, "steps_in_flight"), 0);
  EXPECT_GT(Stat(*pool, "steps_dropped_partial"), 0);
  EXPECT_GT(Stat(*pool, "rollouts_partial"), 0);
  EXPECT_TRUE(BooksBalance(*pool));
}

// Acts as the model of a learner that loses a batch now and then, with weights that age quickly.
void LearnForgetfully(ActorPool& pool, std::atomic<std::int64_t>& version) {
  for (int number = 1;; ++number) {
    auto batch = pool.NextInference(kPatience);
    if (!batch.ok()) return;
    if (number % 50 != 0 && !AnswerBatch(**batch, version).ok()) return;
  }
}

TEST(ActorPoolChurnTest, BooksBalanceAtEveryMoment) {
  constexpr std::uint32_t kThreads = 8;
  constexpr int kLives = 12;
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.min_partial_steps = 2;
    options.max_queued_rollouts = 4;
  });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  std::atomic<std::int64_t> version = 1;
  auto acting = std::async(std::launch::async, [&] { LearnForgetfully(*pool, version); });
  auto learning = std::async(std::launch::async, [&] {
    while (pool->NextRollouts(kPatience, version - 1).ok()) ++version;
  });
  auto watching = std::async(std::launch::async, [&pool] {
    // Waits between two checks; otherwise it would keep the streams from their locks.
    while (pool->NextRollouts(milliseconds(1)).status().code() != absl::StatusCode::kCancelled) {
      EXPECT_TRUE(BooksBalance(*pool));
      pool->TakeStreamEvents();
    }
  });
  std::vector<std::future<void>> actors(kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    actors[i] = std::async(std::launch::async, [&pool, i] {
      std::mt19937 random(100 + i);
      for (int life = 0; life < kLives; ++life) LiveOnce(pool->address(), 3 * i, random);
    });
  }
  for (auto& actor : actors) actor.get();
  EXPECT_TRUE(StatBecomes(*pool, "streams", 0));
  pool->Close(milliseconds(1000));
  acting.get();
  learning.get();
  watching.get();
  EXPECT_GT(Stat(*pool, "streams_ended_dropped"), 0);
  EXPECT_GT(Stat(*pool, "steps_dropped_stale"), 0);
  EXPECT_EQ(Stat(*pool, "steps_in_flight"), 0);
  EXPECT_TRUE(BooksBalance(*pool));
}

TEST(ActorPoolChurnTest, BooksBalanceWhenClosedInFullFlow) {
  const auto pool = StartPool([](PoolOptions& options) { options.expected = RolloutSpec(); });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  constexpr std::uint32_t kActors = 8;
  std::vector<std::future<void>> actors(kActors);
  const TestLearner learner(*pool);
  for (std::uint32_t i = 0; i < kActors; ++i) {
    actors[i] = std::async(std::launch::async, [&pool, i] {
      TestActor actor(pool->address(), 3, 3 * i);
      ASSERT_TRUE(actor.Join());
      while (actor.Step()) {
      }
    });
  }
  ASSERT_TRUE(StatBecomes(*pool, "streams_accepted", kActors));
  ASSERT_TRUE(pool->NextRollouts(kPatience).ok());
  pool->Close(milliseconds(1000));
  for (auto& actor : actors) actor.get();
  EXPECT_EQ(Stat(*pool, "steps_in_flight"), 0);
  EXPECT_GT(Stat(*pool, "steps_dropped_close"), 0);
  EXPECT_TRUE(BooksBalance(*pool));
}

}  // namespace
}  // namespace kubebeast
