// Checks of a RolloutBatch against the values of TestActor and Think().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rollouts/rollout_batch.h"
#include "testing/rollout_test_util.h"

namespace kubebeast {

// One column of a RolloutBatch: rows 0 .. last are real, from step `first_step` of environment `env`.
struct RolloutColumn {
  std::uint32_t env = 0;
  std::int64_t first_step = 0;
  std::size_t last = 0;
  std::size_t num_valid = 0;
};

// Checks every value of a column against those of the environment and the model.
inline RolloutColumn CheckColumn(const RolloutBatch& batch, std::size_t column, std::size_t unroll_length) {
  const auto batch_size = static_cast<std::size_t>(batch.rewards.shape[1]);
  const auto frame = [&](std::size_t t) {
    return batch.observation[0].as<std::int32_t>()[(t * batch_size + column) * kStack + kStack - 1];
  };
  RolloutColumn result{.env = static_cast<std::uint32_t>(frame(0) / 1000 - 1), .first_step = frame(0) % 1000};
  while (result.last < unroll_length && frame(result.last + 1) == frame(0) + static_cast<int>(result.last) + 1) {
    ++result.last;
  }
  const bool ended_early = result.last < unroll_length;
  for (std::size_t t = 0; t <= unroll_length; ++t) {
    const std::size_t cell = t * batch_size + column;
    const std::int32_t now = frame(t);
    const std::int64_t step = now % 1000;
    const bool padding = t > result.last;
    const bool first = IsFirst(result.env, step);
    const bool final = IsFinal(result.env, step);
    EXPECT_EQ(now, FrameValue(result.env, result.first_step + static_cast<std::int64_t>(std::min(t, result.last))));
    EXPECT_EQ(batch.observation[0].as<std::int32_t>()[cell * kStack + 1], first ? -now : now - 1);
    EXPECT_EQ(batch.observation[1].as<float>()[2 * cell], static_cast<float>(now));
    EXPECT_EQ(batch.rewards.as<float>()[cell], first || padding ? 0.0F : static_cast<float>(now));
    EXPECT_EQ(batch.is_first.as<bool>()[cell], first && !padding);
    EXPECT_EQ(batch.terminated.as<bool>()[cell], IsTerminated(result.env, step) && !padding);
    EXPECT_EQ(batch.truncated.as<bool>()[cell],
              !padding && !IsTerminated(result.env, step) && (final || (ended_early && t == result.last)));
    EXPECT_EQ(batch.last_actions[0].as<std::int64_t>()[cell], first ? 0 : ChoiceFor(now - 1));
    if (t == unroll_length) break;
    const bool acted = t < result.last;
    const bool valid = acted && !final;
    result.num_valid += valid ? 1 : 0;
    EXPECT_EQ(batch.valid.as<bool>()[cell], valid);
    EXPECT_EQ(batch.actions[0].as<std::int64_t>()[cell], acted ? ChoiceFor(now) : 0);
    EXPECT_EQ(batch.actions[1].as<float>()[2 * cell + 1], acted ? -ForceFor(now) : 0.0F);
    EXPECT_EQ(batch.policy_logits.as<float>()[2 * cell + 1], acted ? LogitFor(now, 1) : 0.0F);
    EXPECT_EQ(batch.baseline.as<float>()[cell], acted ? BaselineFor(now) : 0.0F);
    EXPECT_EQ(batch.policy_version.as<std::int64_t>()[cell], 1);
  }
  EXPECT_EQ(batch.core_state.as<float>()[2 * column], static_cast<float>(frame(0)));
  return result;
}

}  // namespace kubebeast
