#include "inference/inference_batch.h"

#include <gtest/gtest.h>

#include <new>

#include "rollouts/rollout_assembler.h"
#include "testing/rollout_test_util.h"

namespace kubebeast {
namespace {

class FakeActor final : public Actor {
 public:
  explicit FakeActor(std::vector<std::int32_t> slots) : slots_(std::move(slots)) {}
  const std::vector<std::int32_t>& slots() const override {
    if (finds_no_memory) throw std::bad_alloc();
    return slots_;
  }
  void Act(std::shared_ptr<const ModelOutputs> model_outputs, std::size_t first, const float* state,
           const BatchRecord& batch) override {
    if (breaks) throw std::bad_alloc();
    record = batch;
    outputs = std::move(model_outputs);
    first_output = first;
    core_state = state;
  }
  void Abandon() override { abandoned = true; }

  std::shared_ptr<const ModelOutputs> outputs;
  std::size_t first_output = 0;
  const float* core_state = nullptr;
  BatchRecord record;
  bool abandoned = false;
  bool breaks = false;
  bool finds_no_memory = false;

 private:
  std::vector<std::int32_t> slots_;
};

// Returns the unroll of an actor of two environments that waits at its first step.
std::shared_ptr<const Unroll> WaitingStep(std::vector<std::uint8_t> interrupted = {}) {
  const auto unroll = std::make_shared<Unroll>();
  const StepFlags flags{.is_first = {1, 1}, .interrupted = std::move(interrupted)};
  unroll->envs = {.first = 0, .count = 2};
  unroll->steps.push_back({.observation = MakeObservation(0, flags), .outputs = nullptr});
  return unroll;
}

template <typename T>
std::vector<T> Values(const Array& array, std::size_t count) {
  return std::vector<T>(array.as<T>(), array.as<T>() + count);
}

// Two actors: a (2 environments, at its second step) and b (1 environment, at its first).
class InferenceBatchTest : public ::testing::Test {
 protected:
  InferenceBatchTest() {
    RolloutAssembler second(shape_, 2);
    second.AddStep(MakeObservation(0, {.is_first = {1, 1}}));
    const float core_state[4] = {};
    second.SetOutputs(Think({FrameValue(0, 0), FrameValue(1, 0)}, 1), 0, core_state);
    second.AddStep(MakeObservation(1, {.is_first = {0, 0}, .terminated = {0, 1}}));
    RolloutAssembler first(shape_, 1);
    first.AddStep(MakeObservation(0, {.is_first = {1}}));
    rows_ = {{second.started(), second.at_unroll_start()}, {first.started(), first.at_unroll_start()}};
    std::vector<PendingStep> steps;
    steps.push_back({a_, std::span(rows_).first(1), {}, 3});
    steps.push_back({b_, std::span(rows_).last(1), {}, 1});
    batch_ = std::make_unique<InferenceBatch>(std::move(steps), shape_, *buffers_, stats_);
  }

  absl::Status Answer() {
    const InferenceBatch::Reply reply{
        .actions = {reinterpret_cast<const std::uint8_t*>(choices_), reinterpret_cast<const std::uint8_t*>(forces_)},
        .policy_logits = logits_,
        .baseline = baseline_,
        .policy_version = 9,
        .core_state = core_state_};
    return batch_->Answer(reply);
  }

  const std::shared_ptr<const UnrollShape> shape_ = TestShape(4);
  const std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  const std::shared_ptr<Stats> stats_ = std::make_shared<Stats>();
  const std::shared_ptr<FakeActor> a_ = std::make_shared<FakeActor>(std::vector<std::int32_t>{4, 7});
  const std::shared_ptr<FakeActor> b_ = std::make_shared<FakeActor>(std::vector<std::int32_t>{2});
  std::vector<PendingRows> rows_;
  std::unique_ptr<InferenceBatch> batch_;

  const std::int64_t choices_[3] = {10, 11, 12};
  const float forces_[6] = {0, 1, 2, 3, 4, 5};
  const float logits_[6] = {0, 1, 2, 3, 4, 5};
  const float baseline_[3] = {0.5F, 1.5F, 2.5F};
  const float core_state_[2] = {8, 9};
};

TEST_F(InferenceBatchTest, HoldsTheRowsOfEveryStepInOrder) {
  EXPECT_EQ(batch_->num_rows(), 3);
  EXPECT_EQ(batch_->num_unroll_starts(), 1);
  EXPECT_EQ(Values<std::int32_t>(batch_->observation[0], 9),
            (std::vector<std::int32_t>{-1000, 1000, 1001, -2000, 2000, 2001, -1001, -1000, 1000}));
  EXPECT_EQ(Values<float>(batch_->observation[1], 6), (std::vector<float>{1001, 0.5F, 2001, 0.5F, 1000, 0.5F}));
  EXPECT_EQ(Values<float>(batch_->rewards, 3), (std::vector<float>{1001, 2001, 0}));
  EXPECT_EQ(Values<bool>(batch_->terminated, 3), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(Values<bool>(batch_->truncated, 3), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(Values<bool>(batch_->is_first, 3), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(Values<std::int64_t>(batch_->last_actions[0], 3),
            (std::vector<std::int64_t>{ChoiceFor(1000), ChoiceFor(2000), 0}));
  EXPECT_EQ(Values<std::int32_t>(batch_->slots, 3), (std::vector<std::int32_t>{4, 7, 2}));
  EXPECT_EQ(Values<bool>(batch_->unroll_start, 3), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(Values<std::int64_t>(batch_->task, 3), (std::vector<std::int64_t>{3, 3, 1}));
}

TEST_F(InferenceBatchTest, AnswerReachesEveryActorWithItsRows) {
  ASSERT_TRUE(Answer().ok());
  EXPECT_EQ(a_->first_output, 0);
  EXPECT_EQ(b_->first_output, 2);
  EXPECT_EQ(a_->outputs, b_->outputs) << "one copy serves all";
  EXPECT_EQ(b_->outputs->policy_logits, std::vector<float>(logits_, logits_ + 6));
  EXPECT_EQ(b_->outputs->baseline, std::vector<float>(baseline_, baseline_ + 3));
  EXPECT_EQ(b_->outputs->policy_version, 9);
  const VectorStep step{.observation = nullptr, .outputs = b_->outputs, .first_output = b_->first_output};
  std::int64_t choice = 0;
  std::memcpy(&choice, step.actions(0, sizeof(choice), 0), sizeof(choice));
  EXPECT_EQ(choice, 12);
}

TEST_F(InferenceBatchTest, CoreStateGoesToTheActorsAtAnUnrollStart) {
  ASSERT_TRUE(Answer().ok());
  EXPECT_EQ(a_->core_state, nullptr);
  EXPECT_EQ(b_->core_state, core_state_);
}

TEST_F(InferenceBatchTest, AnswerTellsHowTheBatchWent) {
  ASSERT_TRUE(Answer().ok());
  EXPECT_EQ(a_->record.num_rows, 3);
  EXPECT_EQ(a_->record.policy_version, 9);
  EXPECT_LE(a_->record.taken, a_->record.gathered);
  EXPECT_LE(a_->record.gathered, a_->record.answered);
  EXPECT_EQ(b_->record.answered, a_->record.answered);
}

TEST_F(InferenceBatchTest, SaysWhichRowsOnlyKeepTheirPlace) {
  std::vector<PendingStep> steps;
  const std::vector<PendingRows> rows{{WaitingStep({0, 1})}};
  steps.push_back({.actor = a_, .parts = rows});
  const InferenceBatch batch(std::move(steps), shape_, *buffers_, stats_);
  EXPECT_EQ(Values<bool>(batch.interrupted, 2), (std::vector<bool>{false, true}));
}

TEST_F(InferenceBatchTest, SingleFramesAreTheNewestAndWholeStacksOfFirstRows) {
  UnrollShape single = *shape_;
  single.single_frames = true;
  const auto unroll = std::make_shared<Unroll>();
  unroll->envs = {.first = 0, .count = 2};
  unroll->steps.push_back({.observation = MakeObservation(4, {.is_first = {0, 0}}), .outputs = Think({0, 0}, 1)});
  unroll->steps.push_back({.observation = MakeObservation(5, {.is_first = {0, 1}}), .outputs = nullptr});
  std::vector<PendingStep> steps;
  const std::vector<PendingRows> running{{unroll}};
  steps.push_back({.actor = a_, .parts = running});
  const std::vector<PendingRows> waiting{{WaitingStep()}};
  steps.push_back({.actor = a_, .parts = waiting});
  InferenceBatch batch(std::move(steps), std::make_shared<const UnrollShape>(single), *buffers_, stats_);
  EXPECT_EQ(batch.observation[0].shape, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(Values<std::int32_t>(batch.observation[0], 4), (std::vector<std::int32_t>{1005, 2005, 1000, 2000}));
  EXPECT_EQ(batch.first_stacks[0].shape, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(Values<std::int32_t>(batch.first_stacks[0], 9),
            (std::vector<std::int32_t>{-2006, -2005, 2005, -1001, -1000, 1000, -2001, -2000, 2000}));
  EXPECT_EQ(batch.first_stacks[1].shape, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(batch.Split().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(InferenceBatchTest, PartsHoldTheRowsOfOneActorEach) {
  const auto parts = batch_->Split();
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 2);
  const InferenceBatch& a = *parts->front();
  const InferenceBatch& b = *parts->back();
  EXPECT_EQ(Values<std::int32_t>(a.slots, 2), (std::vector<std::int32_t>{4, 7}));
  EXPECT_EQ(Values<std::int32_t>(a.observation[0], 6),
            (std::vector<std::int32_t>{-1000, 1000, 1001, -2000, 2000, 2001}));
  EXPECT_EQ(a.num_unroll_starts(), 0);
  EXPECT_EQ(b.num_rows(), 1);
  EXPECT_EQ(b.observation[0].shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(Values<std::int32_t>(b.observation[0], 3), (std::vector<std::int32_t>{-1001, -1000, 1000}));
  EXPECT_EQ(Values<std::int64_t>(b.task, 1), std::vector<std::int64_t>{1});
  EXPECT_EQ(b.num_unroll_starts(), 1);
}

TEST_F(InferenceBatchTest, PartsAreAnsweredByThemselves) {
  auto parts = batch_->Split();
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(batch_->Split().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Answer().code(), absl::StatusCode::kFailedPrecondition) << "the whole has become its parts";
  batch_ = std::move(parts->back());
  ASSERT_TRUE(Answer().ok());
  EXPECT_EQ(b_->first_output, 0);
  EXPECT_EQ(b_->record.num_rows, 1);
  EXPECT_EQ(a_->outputs, nullptr);
  parts->clear();
  EXPECT_TRUE(a_->abandoned);
  EXPECT_FALSE(b_->abandoned);
}

TEST_F(InferenceBatchTest, SecondAnswerIsRefused) {
  ASSERT_TRUE(Answer().ok());
  EXPECT_EQ(Answer().code(), absl::StatusCode::kFailedPrecondition);
  batch_.reset();
  EXPECT_FALSE(a_->abandoned);
  EXPECT_EQ(stats_->inference_dropped, 0);
}

TEST_F(InferenceBatchTest, DroppedBatchAbandonsItsActors) {
  batch_.reset();
  EXPECT_TRUE(a_->abandoned);
  EXPECT_TRUE(b_->abandoned);
  EXPECT_EQ(stats_->inference_dropped, 1);
}

TEST_F(InferenceBatchTest, ActorThatFailsIsAbandonedAndTheOthersAreAnswered) {
  a_->breaks = true;
  EXPECT_TRUE(Answer().ok());
  EXPECT_TRUE(a_->abandoned);
  EXPECT_FALSE(b_->abandoned);
  EXPECT_EQ(b_->outputs->policy_version, 9);
}

TEST_F(InferenceBatchTest, BatchThatFindsNoMemoryAbandonsItsActors) {
  a_->finds_no_memory = true;
  std::vector<PendingStep> steps;
  const std::vector<PendingRows> rows{{WaitingStep()}};
  steps.push_back({.actor = a_, .parts = rows});
  EXPECT_THROW(InferenceBatch(std::move(steps), shape_, *buffers_, stats_), std::bad_alloc);
  EXPECT_TRUE(a_->abandoned);
  EXPECT_EQ(stats_->inference_dropped, 1);
}

}  // namespace
}  // namespace kubebeast
