#include "rollouts/rollout_assembler.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "rollouts/rollout_batch.h"
#include "testing/rollout_test_util.h"

namespace kubebeast {
namespace {

constexpr std::uint32_t kEnvs = 2;
constexpr std::size_t kT = 5;

// The part of one unroll that belongs to one environment, unpacked.
struct Column {
  std::vector<std::array<std::int32_t, kStack>> stacks;  // [T+1]
  std::vector<float> rewards;
  std::vector<bool> terminated, truncated, is_first;
  std::vector<std::int64_t> last_choices;
  std::vector<std::int64_t> choices;  // [T]
  std::vector<float> forces, logits, baseline;
  std::vector<std::int64_t> versions;
  std::vector<bool> valid;
  float core_state = 0;
  std::array<std::int64_t, 3> origin;
  std::size_t num_transitions = 0;
};

Column Unpack(const std::shared_ptr<const Unroll>& unroll, std::uint32_t env, const UnrollShape& shape) {
  const auto buffers = std::make_shared<BufferPool>();
  const RolloutBatch batch = GatherRollouts({{unroll, env, unroll->num_valid(env)}}, shape, *buffers);
  Column column;
  for (std::size_t t = 0; t <= kT; ++t) {
    const auto* const stack = batch.observation[0].as<std::int32_t>() + t * kStack;
    column.stacks.push_back({stack[0], stack[1], stack[2]});
    EXPECT_EQ(batch.observation[1].as<float>()[2 * t], static_cast<float>(stack[2]));
    column.rewards.push_back(batch.rewards.as<float>()[t]);
    column.terminated.push_back(batch.terminated.as<bool>()[t]);
    column.truncated.push_back(batch.truncated.as<bool>()[t]);
    column.is_first.push_back(batch.is_first.as<bool>()[t]);
    column.last_choices.push_back(batch.last_actions[0].as<std::int64_t>()[t]);
  }
  for (std::size_t t = 0; t < kT; ++t) {
    column.choices.push_back(batch.actions[0].as<std::int64_t>()[t]);
    column.forces.push_back(batch.actions[1].as<float>()[2 * t]);
    column.logits.push_back(batch.policy_logits.as<float>()[2 * t + 1]);
    column.baseline.push_back(batch.baseline.as<float>()[t]);
    column.versions.push_back(batch.policy_version.as<std::int64_t>()[t]);
    column.valid.push_back(batch.valid.as<bool>()[t]);
  }
  column.core_state = batch.core_state.as<float>()[0];
  column.num_transitions = batch.num_transitions;
  std::copy_n(batch.origin.as<std::int64_t>(), 3, column.origin.begin());
  return column;
}

// Fixture that passes steps with chosen flags to an assembler; policy_version is the step, core_state the newest frame.
class RolloutAssemblerTest : public ::testing::Test {
 protected:
  RolloutAssembler::Added Step() {
    const RolloutAssembler::Added added = assembler_.AddStep(MakeObservation(step_, flags_));
    std::vector<std::int32_t> frames{-1};  // the batch's first row belongs to another stream
    std::vector<float> core_state;
    for (std::uint32_t env = 0; env < kEnvs; ++env) {
      frames.push_back(FrameValue(env, step_));
      core_state.insert(core_state.end(), {static_cast<float>(frames.back()), 0.0F});
    }
    assembler_.SetOutputs(Think(frames, step_), 1, assembler_.at_unroll_start() ? core_state.data() : nullptr);
    ++step_;
    for (std::uint32_t env = 0; env < kEnvs; ++env) {
      flags_.is_first[env] = flags_.terminated[env] | flags_.truncated[env];
      flags_.terminated[env] = flags_.truncated[env] = 0;
    }
    flags_.interrupted.clear();
    return added;
  }

  // Steps through `rows` rows; environment 0 ends at `final_row`, unless negative. Returns the last finished unroll.
  std::shared_ptr<const Unroll> Run(int rows, int final_row = -1, bool terminated = true) {
    std::shared_ptr<const Unroll> finished;
    for (int row = 0; row < rows; ++row) {
      if (row == final_row) (terminated ? flags_.terminated : flags_.truncated)[0] = 1;
      if (const auto added = Step(); added.finished != nullptr) finished = added.finished;
    }
    return finished;
  }

  const std::shared_ptr<const UnrollShape> shape_ = TestShape(kT);
  RolloutAssembler assembler_{shape_, kEnvs};
  StepFlags flags_{.is_first = {1, 1}, .terminated = {0, 0}, .truncated = {0, 0}};
  std::uint32_t step_ = 0;
};

TEST_F(RolloutAssemblerTest, ConsecutiveUnrollsOverlapByOneRow) {
  std::optional<Column> previous;
  for (std::uint32_t unroll = 0; unroll < 11; ++unroll) {
    const auto finished = Run(unroll == 0 ? kT + 1 : kT);
    ASSERT_NE(finished, nullptr);
    EXPECT_TRUE(assembler_.at_unroll_start());
    const Column column = Unpack(finished, 1, *shape_);
    for (std::uint32_t t = 0; t <= kT; ++t) {
      const std::uint32_t step = unroll * kT + t;
      const std::int32_t frame = FrameValue(1, step);
      EXPECT_EQ(column.stacks[t][2], frame);
      if (step >= 2) {
        EXPECT_EQ(column.stacks[t], (std::array{frame - 2, frame - 1, frame}));
      }
      EXPECT_EQ(column.rewards[t], step == 0 ? 0.0F : static_cast<float>(frame));
      EXPECT_EQ(column.last_choices[t], step == 0 ? 0 : ChoiceFor(frame - 1));
      if (t == kT) break;
      EXPECT_EQ(column.choices[t], ChoiceFor(frame));
      EXPECT_EQ(column.forces[t], ForceFor(frame));
      EXPECT_EQ(column.logits[t], LogitFor(frame, 1));
      EXPECT_EQ(column.baseline[t], BaselineFor(frame));
      EXPECT_EQ(column.versions[t], step);
      EXPECT_TRUE(column.valid[t]);
    }
    EXPECT_EQ(column.core_state, static_cast<float>(FrameValue(1, unroll * kT))) << "the state from before row 0";
    if (previous.has_value()) {
      EXPECT_EQ(column.stacks.front(), previous->stacks.back());
      EXPECT_EQ(column.rewards.front(), previous->rewards.back());
      EXPECT_EQ(column.last_choices.front(), previous->last_choices.back());
    }
    previous = column;
  }
}

TEST_F(RolloutAssemblerTest, OriginsFollowAnEnvironmentFromUnrollToUnroll) {
  assembler_ = RolloutAssembler(shape_, kEnvs, 7);
  for (std::int64_t number = 0; number < 3; ++number) {
    const auto finished = Run(number == 0 ? kT + 1 : kT);
    for (std::uint32_t env = 0; env < kEnvs; ++env) {
      EXPECT_EQ(Unpack(finished, env, *shape_).origin, (std::array<std::int64_t, 3>{7, env, number}));
    }
  }
}

TEST_F(RolloutAssemblerTest, StackNeverReachesBackIntoTheEpisodeBefore) {
  for (int final_row = 0; final_row < 12; ++final_row) {
    assembler_ = RolloutAssembler(shape_, kEnvs);
    flags_ = {.is_first = {1, 1}, .terminated = {0, 0}, .truncated = {0, 0}};
    step_ = 0;
    const std::int32_t first = FrameValue(0, final_row + 1);
    for (int row = 0; row <= 3 * static_cast<int>(kT); ++row) {
      if (row == final_row) flags_.truncated[0] = 1;
      const auto finished = Step().finished;
      if (finished == nullptr) continue;
      const Column column = Unpack(finished, 0, *shape_);
      for (std::uint32_t t = 0; t <= kT; ++t) {
        const std::int32_t frame = FrameValue(0, row - static_cast<int>(kT) + static_cast<int>(t));
        EXPECT_EQ(column.is_first[t], frame == first || frame == FrameValue(0, 0));
        if (frame == first) {
          EXPECT_EQ(column.stacks[t], (std::array{-first - 1, -first, first}));
        }
        if (frame == first + 1) {
          EXPECT_EQ(column.stacks[t], (std::array{-first, first, first + 1}));
        }
        if (frame == first + 2) {
          EXPECT_EQ(column.stacks[t], (std::array{first, first + 1, first + 2}));
        }
        if (frame == first) {
          EXPECT_EQ(column.last_choices[t], 0);
        }
      }
    }
  }
}

TEST_F(RolloutAssemblerTest, TransitionFromAFinalRowIsInvalid) {
  for (const bool terminated : {true, false}) {
    for (int final_row = 0; final_row <= static_cast<int>(kT); ++final_row) {
      assembler_ = RolloutAssembler(shape_, kEnvs);
      flags_ = {.is_first = {1, 1}, .terminated = {0, 0}, .truncated = {0, 0}};
      step_ = 0;
      const auto finished = Run(kT + 1, final_row, terminated);
      const Column column = Unpack(finished, 0, *shape_);
      for (int t = 0; t <= static_cast<int>(kT); ++t) {
        EXPECT_EQ(column.terminated[t], terminated && t == final_row);
        EXPECT_EQ(column.truncated[t], !terminated && t == final_row);
        EXPECT_EQ(column.is_first[t], t == 0 || t == final_row + 1);
        if (t < static_cast<int>(kT)) {
          EXPECT_EQ(column.valid[t], t != final_row);
        }
      }
      EXPECT_EQ(column.num_transitions, final_row < static_cast<int>(kT) ? kT - 1 : kT);
      EXPECT_EQ(Unpack(finished, 1, *shape_).num_transitions, kT) << "the other environment goes on";
    }
  }
}

TEST_F(RolloutAssemblerTest, ActionBeforeAnInterruptedRowHadNoConsequence) {
  Run(2);
  flags_.interrupted = flags_.truncated = {1, 0};
  EXPECT_EQ(Step().num_steps, 1) << "environment 1 went on";
  const Column column = Unpack(Run(3), 0, *shape_);
  EXPECT_EQ(column.valid, (std::vector<bool>{true, false, false, true, true}));
  EXPECT_EQ(column.rewards[2], 0);
  EXPECT_FALSE(column.terminated[1] || column.terminated[2]);
  EXPECT_TRUE(column.is_first[3]);
  EXPECT_EQ(column.num_transitions, 3);
}

TEST_F(RolloutAssemblerTest, NoTransitionLeadsIntoAnAbsentRowOrOutOfIt) {
  Run(1);
  flags_.terminated = {1, 0};
  EXPECT_EQ(Step().num_steps, 2);
  for (int t = 2; t < 4; ++t) {
    flags_ = {.is_first = {1, 0}, .terminated = {0, 0}, .truncated = {1, 0}, .interrupted = {1, 0}};
    EXPECT_EQ(Step().num_steps, 1) << "environment 1 goes on";
  }
  const Column column = Unpack(Run(2), 0, *shape_);
  EXPECT_EQ(column.valid, (std::vector<bool>{true, false, false, false, true}));
  EXPECT_EQ(column.rewards[2], 0);
  EXPECT_TRUE(column.terminated[1] && !column.truncated[1]);
  EXPECT_TRUE(column.is_first[4]);
  EXPECT_EQ(column.num_transitions, 2);
}

TEST_F(RolloutAssemblerTest, CountsATransitionWhenItsSecondRowArrives) {
  EXPECT_EQ(Step().num_steps, 0);
  flags_.terminated[0] = 1;
  EXPECT_EQ(Step().num_steps, 2);
  EXPECT_EQ(Step().num_steps, 1) << "environment 0 goes from its final row to the next episode";
  EXPECT_EQ(Step().num_steps, 2);
}

TEST_F(RolloutAssemblerTest, EarlyEndPadsWithTheLastRow) {
  for (int last = 1; last < static_cast<int>(kT); ++last) {
    assembler_ = RolloutAssembler(shape_, kEnvs);
    flags_ = {.is_first = {1, 1}, .terminated = {0, 0}, .truncated = {0, 0}};
    step_ = 0;
    Run(last + 1);
    const auto finished = assembler_.Finish(Unroll::End::kTruncated);
    ASSERT_NE(finished, nullptr);
    const Column column = Unpack(finished, 1, *shape_);
    for (int t = 0; t <= static_cast<int>(kT); ++t) {
      EXPECT_EQ(column.stacks[t][2], FrameValue(1, std::min(t, last)));
      EXPECT_EQ(column.rewards[t], t == 0 || t > last ? 0.0F : static_cast<float>(FrameValue(1, t)));
      EXPECT_EQ(column.truncated[t], t == last);
      EXPECT_FALSE(column.terminated[t]);
      EXPECT_EQ(column.is_first[t], t == 0);
      if (t == static_cast<int>(kT)) break;
      EXPECT_EQ(column.valid[t], t < last);
      EXPECT_EQ(column.choices[t], t < last ? ChoiceFor(FrameValue(1, t)) : 0);
      EXPECT_EQ(column.logits[t], t < last ? LogitFor(FrameValue(1, t), 1) : 0.0F);
      EXPECT_EQ(column.baseline[t], t < last ? BaselineFor(FrameValue(1, t)) : 0.0F);
      EXPECT_EQ(column.versions[t], std::min(t, last - 1));
    }
    EXPECT_EQ(column.num_transitions, last);
  }
}

TEST_F(RolloutAssemblerTest, EarlyEndAfterACarriedRowKeepsItsHistory) {
  Run(kT + 2);
  const Column column = Unpack(assembler_.Finish(Unroll::End::kTruncated), 0, *shape_);
  const std::int32_t frame = FrameValue(0, kT);
  EXPECT_EQ(column.stacks[0], (std::array{frame - 2, frame - 1, frame}));
  EXPECT_EQ(column.last_choices[0], ChoiceFor(frame - 1));
  EXPECT_EQ(column.num_transitions, 1);
}

TEST_F(RolloutAssemblerTest, TerminatedEndMarksTheLastRow) {
  Run(3);
  const Column column = Unpack(assembler_.Finish(Unroll::End::kTerminated), 0, *shape_);
  EXPECT_EQ(column.terminated, (std::vector<bool>{false, false, true, false, false, false}));
  EXPECT_EQ(column.truncated, std::vector<bool>(kT + 1));
}

TEST_F(RolloutAssemblerTest, EpisodeThatHadEndedIsNotEndedAgain) {
  Run(3, 2, /*terminated=*/true);
  const auto finished = assembler_.Finish(Unroll::End::kTruncated);
  EXPECT_EQ(Unpack(finished, 0, *shape_).truncated, std::vector<bool>(kT + 1));
  EXPECT_TRUE(Unpack(finished, 0, *shape_).terminated[2]);
  EXPECT_TRUE(Unpack(finished, 1, *shape_).truncated[2]);
}

TEST_F(RolloutAssemblerTest, EndWithoutATransitionGivesNoUnroll) {
  EXPECT_EQ(RolloutAssembler(shape_, kEnvs).Finish(Unroll::End::kTruncated), nullptr);
  Run(kT + 1);
  EXPECT_EQ(assembler_.Finish(Unroll::End::kTruncated), nullptr) << "only the carried row was there";
}

TEST_F(RolloutAssemblerTest, WithoutUnrollsItKeepsTheWindowAlone) {
  RolloutAssembler assembler(TestShape(0), 1);
  assembler.AddStep(MakeObservation(0, {.is_first = {1}}));
  for (std::uint64_t step = 1; step < 100; ++step) {
    EXPECT_FALSE(assembler.at_unroll_start());
    assembler.SetOutputs(Think({FrameValue(0, static_cast<std::int64_t>(step) - 1)}, 1), 0, nullptr);
    const RolloutAssembler::Added added = assembler.AddStep(MakeObservation(step, {.is_first = {0}}));
    EXPECT_EQ(added.num_steps, 1);
    EXPECT_EQ(added.finished, nullptr);
  }
  const std::shared_ptr<const Unroll> window = assembler.started();
  ASSERT_EQ(window->steps.size(), kStack);
  EXPECT_EQ(window->steps.back().observation->step, 99);
  EXPECT_EQ(assembler.Finish(Unroll::End::kTruncated), nullptr);
}

}  // namespace
}  // namespace kubebeast
