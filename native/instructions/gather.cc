#include <memory>
#include <vector>

#include "operations.h"
#include "rollouts/rollout_assembler.h"
#include "rollouts/rollout_batch.h"

namespace kubebeast::instructions {
namespace {

constexpr std::size_t kUnrollLength = 20;
constexpr std::uint32_t kUnrolls = 8;  // environments of one stream
constexpr std::size_t kNumLogits = 6;

std::shared_ptr<const UnrollShape> Shape(bool single_frames) {
  UnrollShape shape{.unroll_length = kUnrollLength,
                    .num_logits = kNumLogits,
                    .interleaved = {!single_frames},
                    .single_frames = single_frames};
  shape.spec.observation = {{.path = "", .dtype = DType::kUint8, .shape = {84, 84}, .frame_stack = kFrameStack}};
  shape.spec.action = {{.path = "", .dtype = DType::kInt64, .shape = {}, .num_categories = kNumLogits}};
  return std::make_shared<const UnrollShape>(std::move(shape));
}

std::shared_ptr<const ObservationRows> Rows(std::size_t step) {
  const bool is_first = step == 0;
  const std::size_t row_bytes = (is_first ? kFrameStack : 1) * kFrameBytes;
  const auto rows = std::make_shared<ObservationRows>();
  rows->step = step;
  rows->rewards.assign(kUnrolls, 0.0F);
  rows->terminated = rows->truncated = rows->interrupted = std::vector<std::uint8_t>(kUnrolls);
  rows->is_first.assign(kUnrolls, is_first ? 1 : 0);
  ObservationRows::Leaf& leaf = rows->leaves.emplace_back();
  leaf.data = std::make_unique<std::uint8_t[]>(kUnrolls * row_bytes);
  for (std::size_t i = 0; i < kUnrolls * row_bytes; ++i) {
    leaf.data[i] = static_cast<std::uint8_t>(FrameByte(i, step));
  }
  for (std::size_t env = 0; env < kUnrolls; ++env) leaf.offsets.push_back(env * row_bytes);
  return rows;
}

std::shared_ptr<const ModelOutputs> Outputs() {
  const auto outputs = std::make_shared<ModelOutputs>();
  outputs->actions.emplace_back(kUnrolls * sizeof(std::int64_t));
  outputs->policy_logits.resize(kUnrolls * kNumLogits);
  outputs->baseline.resize(kUnrolls);
  return outputs;
}

// Returns the second unroll of a stream: the stacks of its first steps reach back into the one before.
std::shared_ptr<const Unroll> MakeUnroll(const std::shared_ptr<const UnrollShape>& shape) {
  RolloutAssembler assembler(shape, kUnrolls);
  std::shared_ptr<const Unroll> unroll;
  for (std::size_t step = 0; step <= 2 * kUnrollLength; ++step) {
    if (auto added = assembler.AddStep(Rows(step)); added.finished != nullptr) unroll = std::move(added.finished);
    assembler.SetOutputs(Outputs(), 0, nullptr);
  }
  return unroll;
}

}  // namespace

Operation Gather(bool single_frames) {
  const auto shape = Shape(single_frames);
  const auto buffers = std::make_shared<BufferPool>();
  const auto unroll = MakeUnroll(shape);
  std::vector<FinishedUnroll> unrolls;
  for (std::uint32_t env = 0; env < kUnrolls; ++env) unrolls.push_back({unroll, env, kUnrollLength, 0, {}});
  return [=] {
    const RolloutBatch batch = GatherRollouts(unrolls, *shape, *buffers);
    Require(batch.num_transitions == kUnrolls * kUnrollLength, "gather");
  };
}

}  // namespace kubebeast::instructions
