#include "rollouts/single_frames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "rollouts/rollout_assembler.h"
#include "rollouts/rollout_batch.h"
#include "testing/frame_steps.h"
#include "testing/rollout_test_util.h"

namespace kubebeast {
namespace {

constexpr std::uint32_t kFilms = 3;

UnrollShape FilmShape(std::size_t unroll_length, bool single_frames) {
  UnrollShape shape = *TestShape(unroll_length);
  shape.single_frames = single_frames;
  return shape;
}

StepFlags FilmFlags(std::uint64_t step) {
  StepFlags flags;
  for (std::uint32_t env = 0; env < kFilms; ++env) {
    const auto at = static_cast<std::int64_t>(step);
    flags.is_first.push_back(IsFirst(env, at));
    flags.terminated.push_back(IsTerminated(env, at));
    flags.truncated.push_back(IsFinal(env, at) && !IsTerminated(env, at));
  }
  return flags;
}

// Returns all finished unrolls of a stream that ends after `num_steps` steps.
std::vector<std::shared_ptr<const Unroll>> FilmUnrolls(std::size_t unroll_length, std::uint64_t num_steps) {
  RolloutAssembler assembler(TestShape(unroll_length), kFilms);
  const std::vector<float> core_state(2 * std::size_t{kFilms});
  std::vector<std::shared_ptr<const Unroll>> unrolls;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    const auto added = assembler.AddStep(MakeObservation(step, FilmFlags(step)));
    if (added.finished != nullptr) unrolls.push_back(added.finished);
    assembler.SetOutputs(Think(std::vector<std::int32_t>(kFilms), 0), 0,
                         assembler.at_unroll_start() ? core_state.data() : nullptr);
  }
  if (auto rest = assembler.Finish(Unroll::End::kTruncated)) unrolls.push_back(std::move(rest));
  return unrolls;
}

std::vector<FinishedUnroll> FilmColumns(const std::shared_ptr<const Unroll>& unroll) {
  std::vector<FinishedUnroll> columns;
  for (std::uint32_t env = 0; env < kFilms; ++env) columns.push_back({unroll, env, unroll->num_valid(env)});
  return columns;
}

class SingleFramesTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SingleFramesTest, TheirStacksAreThoseThatTheCoreMakes) {
  const std::size_t length = GetParam();
  const auto buffers = std::make_shared<BufferPool>();
  const auto unrolls = FilmUnrolls(length, 47);
  ASSERT_GE(unrolls.size(), 4U);
  for (const auto& unroll : unrolls) {
    const RolloutBatch whole = GatherRollouts(FilmColumns(unroll), FilmShape(length, false), *buffers);
    const RolloutBatch single = GatherRollouts(FilmColumns(unroll), FilmShape(length, true), *buffers);
    EXPECT_TRUE(whole.frame_index.empty());
    const auto* const stacks = whole.observation[0].as<std::int32_t>();
    const auto* const frames = single.observation[0].as<std::int32_t>();
    const auto* const index = single.frame_index[0].as<std::int32_t>();
    for (std::size_t cell = 0; cell < (length + 1) * kFilms; ++cell) {
      for (std::size_t j = 0; j < kStack; ++j) {
        const std::int32_t row = index[cell * kStack + j];
        ASSERT_GE(row, 0);
        ASSERT_LT(row, single.observation[0].shape[0]);
        ASSERT_EQ(frames[static_cast<std::size_t>(row) * kFilms + cell % kFilms], stacks[cell * kStack + j]) << cell;
      }
    }
    // The other leaf is not affected.
    EXPECT_EQ(single.frame_index[1].shape,
              (std::vector<std::int64_t>{static_cast<std::int64_t>(length) + 1, kFilms, 0}));
    EXPECT_EQ(single.observation[1].shape, whole.observation[1].shape);
    EXPECT_EQ(std::memcmp(single.observation[1].data.get(), whole.observation[1].data.get(),
                          (length + 1) * kFilms * 2 * sizeof(float)),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(UnrollsOf, SingleFramesTest, testing::Values(1, 2, 5, 11));

constexpr std::size_t kNumberBytes = 2;

VectorStep Number(std::uint8_t number) { return FrameStep({number}, false, kNumberBytes); }
VectorStep FirstOf(const std::vector<std::uint8_t>& numbers) { return FrameStep(numbers, true, kNumberBytes); }

FrameColumn ColumnOf(std::vector<VectorStep> steps, std::size_t origin, std::size_t unroll_length) {
  static std::optional<Unroll> unroll;  // kept alive here, as a column refers to its unroll
  unroll.emplace();
  unroll->steps = std::move(steps);
  unroll->origin = origin;
  return {*unroll, 0, 0, {.path = "image", .shape = {2}, .frame_stack = 3}, unroll_length};
}

std::vector<int> Numbers(const FrameColumn& column) {
  std::vector<int> values;
  for (const std::uint8_t* frame : column.frames()) values.push_back(static_cast<int>(*frame / kNumberBytes));
  return values;
}

TEST(FrameColumnTest, EqualFramesOfAFirstStackAreOne) {
  const FrameColumn column = ColumnOf({FirstOf({7, 7, 7}), Number(8), Number(8)}, 0, 2);
  EXPECT_EQ(Numbers(column), (std::vector<int>{7, 8, 8}));
  EXPECT_EQ(column.index(), (std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 0, 1, 2}));
}

TEST(FrameColumnTest, ThoseBeforeRowZeroAreThereToo) {
  const FrameColumn column = ColumnOf({FirstOf({1, 2, 3}), Number(4), Number(5)}, 1, 1);
  EXPECT_EQ(Numbers(column), (std::vector<int>{2, 3, 4, 5}));
  EXPECT_EQ(column.index(), (std::vector<std::int32_t>{0, 1, 2, 1, 2, 3}));
}

TEST(FrameColumnTest, AnUnrollThatEndedEarlyRepeatsItsLastRow) {
  const FrameColumn column = ColumnOf({FirstOf({1, 2, 3}), Number(4)}, 0, 3);
  EXPECT_EQ(column.index(), (std::vector<std::int32_t>{0, 1, 2, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(FrameColumnTest, AnEpisodeInTheMiddleBringsAStackOfItsOwn) {
  const FrameColumn column = ColumnOf({FirstOf({1, 1, 1}), FirstOf({0, 0, 9})}, 0, 1);
  EXPECT_EQ(Numbers(column), (std::vector<int>{1, 0, 9}));
  EXPECT_EQ(column.index(), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 2}));
}

TEST(FrameColumnTest, StacksMayHoldAnyNumberOfFrames) {
  for (const std::uint32_t k : {2U, 4U, 5U, 9U}) {
    std::vector<std::uint8_t> first(k);
    std::iota(first.begin(), first.end(), std::uint8_t{1});
    Unroll unroll;
    unroll.steps = {FirstOf(first), Number(101), Number(102)};
    const LeafSpec spec{.path = "image", .shape = {2}, .frame_stack = k};
    const FrameColumn column(unroll, 0, 0, spec, 2);
    std::vector<std::uint8_t> film = first;
    film.insert(film.end(), {101, 102});
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t j = 0; j < k; ++j) {
        const auto row = static_cast<std::size_t>(column.index()[t * k + j]);
        EXPECT_EQ(Numbers(column)[row], film[t + j]) << k;
      }
    }
  }
}

TEST(NumFrameRowsTest, IsAlwaysTheSameUnlessAColumnHasMore) {
  const LeafSpec spec{.path = "image", .shape = {2}, .frame_stack = 3};
  EXPECT_EQ(NumFrameRows({ColumnOf({FirstOf({7, 7, 7}), Number(8)}, 0, 1)}, spec, 1), 4U);
  EXPECT_EQ(NumFrameRows({ColumnOf({FirstOf({1, 2, 3}), FirstOf({4, 5, 6})}, 0, 1)}, spec, 1), 6U);
}

}  // namespace
}  // namespace kubebeast
