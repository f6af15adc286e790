// Common parts of the tests with real streams: a pool, its stats, and a learner that answers.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pool/actor_pool.h"
#include "testing/rollout_check.h"
#include "testing/rollout_test_util.h"
#include "testing/test_actor.h"
#include "testing/test_patience.h"

namespace kubebeast {

inline std::unique_ptr<ActorPool> StartPool(const std::function<void(PoolOptions&)>& adjust = [](PoolOptions&) {}) {
  PoolOptions options;
  options.address = "127.0.0.1:0";
  options.run_id = "test-run";
  options.unroll_length = 5;
  options.batch_size = 2;
  options.max_queued_rollouts = 1000;
  options.max_offences = 0;
  adjust(options);
  auto pool = ActorPool::Create(options);
  EXPECT_TRUE(pool.ok()) << pool.status();
  const absl::Status started = (*pool)->Start();
  EXPECT_TRUE(started.ok()) << started;
  return *std::move(pool);
}

inline std::int64_t Stat(const ActorPool& pool, std::string_view name) {
  for (const auto& [key, value] : pool.GetStats()) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no such stat: " << name;
  return -1;
}

// Blocks until the pool has noticed an event at the other end of a connection.
inline testing::AssertionResult StatBecomes(const ActorPool& pool, std::string_view name, std::int64_t value) {
  if (Eventually([&] { return Stat(pool, name) == value; })) return testing::AssertionSuccess();
  return testing::AssertionFailure() << name << " is " << Stat(pool, name) << ", expected " << value;
}

// Checks the counts of steps, at any moment and under any activity of the streams.
inline testing::AssertionResult BooksBalance(const ActorPool& pool) {
  std::int64_t sampled = 0;
  std::int64_t accounted = 0;
  for (const auto& [name, value] : pool.GetStats()) {
    if (name == "steps_sampled") sampled = value;
    if (name == "steps_delivered" || name == "steps_in_flight" || name.starts_with("steps_dropped_")) {
      accounted += value;
    }
  }
  if (sampled == accounted) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "sampled " << sampled << ", accounted for " << accounted;
}

// Answers a batch like Think(); core_state is the newest frame, twice.
inline absl::Status AnswerBatch(InferenceBatch& batch, std::int64_t policy_version = 1,
                                const std::int64_t* opponents = nullptr) {
  std::vector<std::int32_t> frames;
  std::vector<float> core_state;
  for (std::size_t row = 0; row < batch.num_rows(); ++row) {
    frames.push_back(batch.observation[0].as<std::int32_t>()[row * kStack + kStack - 1]);
    if (batch.unroll_start.as<bool>()[row]) core_state.insert(core_state.end(), 2, static_cast<float>(frames.back()));
  }
  const auto outputs = Think(frames, policy_version);
  return batch.Answer({.actions = {outputs->actions[0].data(), outputs->actions[1].data()},
                       .policy_logits = outputs->policy_logits.data(),
                       .baseline = outputs->baseline.data(),
                       .policy_version = policy_version,
                       .core_state = core_state.data(),
                       .opponents = opponents});
}

// Blocks until the next batch is there, and answers it.
inline absl::Status AnswerNext(ActorPool& pool) {
  auto batch = pool.NextInference(kPatience);
  return batch.ok() ? AnswerBatch(**batch) : batch.status();
}

// A learner that answers every batch and closes the pool when destroyed.
class TestLearner {
 public:
  explicit TestLearner(ActorPool& pool, int num_threads = 1) : pool_(pool) {
    for (int i = 0; i < num_threads; ++i) {
      threads_.emplace_back([&pool] {
        while (AnswerNext(pool).ok()) {
        }
      });
    }
  }
  ~TestLearner() {
    pool_.Close(std::chrono::seconds(1));
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  ActorPool& pool_;
  std::vector<std::thread> threads_;
};

// Fixture with a pool that is open for RolloutSpec() and has no learner: the tests answer at the time they choose.
class OpenPoolTest : public ::testing::Test {
 protected:
  void StartOpenPool(const std::function<void(PoolOptions&)>& adjust = [](PoolOptions&) {}) {
    pool_ = StartPool([&adjust](PoolOptions& options) {
      options.expected = RolloutSpec();
      adjust(options);
    });
    ASSERT_TRUE(pool_->Open(2, 2).ok());
  }

  // Takes `steps` steps, answering each.
  void Walk(TestActor& actor, int steps) {
    for (int i = 0; i < steps; ++i) {
      auto answer = std::async(std::launch::async, [this] { return AnswerNext(*pool_); });
      EXPECT_TRUE(actor.Step());
      EXPECT_TRUE(answer.get().ok());
    }
  }

  std::unique_ptr<ActorPool> pool_;
};

}  // namespace kubebeast
