#include "rollouts/rollout_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rollouts/frame_stack.h"

namespace kubebeast {
namespace {

std::vector<std::int64_t> Prepend(std::size_t steps, std::size_t columns, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), {static_cast<std::int64_t>(steps), static_cast<std::int64_t>(columns)});
  return shape;
}

RolloutBatch Allocate(std::size_t batch_size, const UnrollShape& shape, BufferPool& buffers) {
  const std::size_t length = shape.unroll_length;
  const auto make = [&](DType dtype, std::size_t steps, std::vector<std::int64_t> row_shape = {}) {
    return buffers.Allocate(dtype, Prepend(steps, batch_size, std::move(row_shape)));
  };
  RolloutBatch batch;
  for (std::size_t i = 0; i < shape.spec.observation.size(); ++i) {
    batch.observation.push_back(make(shape.spec.observation[i].dtype, length + 1, shape.observation_shape(i)));
  }
  for (const LeafSpec& leaf : shape.spec.action) {
    batch.last_actions.push_back(make(leaf.dtype, length + 1, leaf.row_shape()));
    batch.actions.push_back(make(leaf.dtype, length, leaf.row_shape()));
  }
  batch.rewards = make(DType::kFloat32, length + 1);
  batch.terminated = make(DType::kBool, length + 1);
  batch.truncated = make(DType::kBool, length + 1);
  batch.is_first = make(DType::kBool, length + 1);
  batch.policy_logits = make(DType::kFloat32, length, {static_cast<std::int64_t>(shape.num_logits)});
  batch.baseline = make(DType::kFloat32, length);
  batch.policy_version = make(DType::kInt64, length);
  batch.valid = make(DType::kBool, length);
  batch.core_state = buffers.Allocate(
      DType::kFloat32, {static_cast<std::int64_t>(batch_size), static_cast<std::int64_t>(shape.core_state_size)});
  batch.task = buffers.Allocate(DType::kInt64, {static_cast<std::int64_t>(batch_size)});
  return batch;
}

// Writes one column (one unroll) of the batch.
class ColumnWriter {
 public:
  ColumnWriter(const UnrollShape& shape, const FinishedUnroll& source, std::size_t column, std::size_t batch_size,
               RolloutBatch& batch)
      : shape_(shape),
        unroll_(*source.unroll),
        env_(source.env),
        column_(column),
        batch_size_(batch_size),
        batch_(batch) {}

  void Write() {
    for (std::size_t t = 0; t <= shape_.unroll_length; ++t) {
      WriteObservation(t);
      WriteFlags(t);
    }
    for (std::size_t t = 0; t < shape_.unroll_length; ++t) WriteOutputs(t);
    std::copy_n(unroll_.core_state.begin() + static_cast<std::ptrdiff_t>(env_ * shape_.core_state_size),
                shape_.core_state_size, batch_.core_state.as<float>() + column_ * shape_.core_state_size);
  }

 private:
  std::size_t cell(std::size_t t) const { return t * batch_size_ + column_; }

  void WriteObservation(std::size_t t) {
    const auto steps = unroll_.upto(std::min(t, unroll_.length()));
    for (std::size_t i = 0; i < shape_.spec.observation.size(); ++i) {
      const LeafSpec& leaf = shape_.spec.observation[i];
      std::uint8_t* const out = batch_.observation[i].data.get() + cell(t) * leaf.row_bytes();
      CopyStack(steps, i, leaf, env_, shape_.interleaved[i], out);
    }
    for (std::size_t i = 0; i < shape_.spec.action.size(); ++i) {
      const LeafSpec& leaf = shape_.spec.action[i];
      CopyLastAction(steps, i, leaf, env_, batch_.last_actions[i].data.get() + cell(t) * leaf.row_bytes());
    }
  }

  void WriteFlags(std::size_t t) {
    const bool padding = t > unroll_.length();
    const VectorStep& step = unroll_.step(std::min(t, unroll_.length()));
    const bool ends = t == unroll_.length() && !step.is_final(env_);
    const ObservationRows& block = *step.observation;
    batch_.rewards.as<float>()[cell(t)] = padding ? 0.0F : block.rewards[env_];
    batch_.terminated.as<bool>()[cell(t)] =
        !padding && (block.terminated[env_] != 0 || (ends && unroll_.end == Unroll::End::kTerminated));
    batch_.truncated.as<bool>()[cell(t)] =
        !padding && (block.truncated[env_] != 0 || (ends && unroll_.end == Unroll::End::kTruncated));
    batch_.is_first.as<bool>()[cell(t)] = !padding && block.is_first[env_] != 0;
  }

  void WriteOutputs(std::size_t t) {
    const bool padding = t >= unroll_.length();
    const VectorStep& step = unroll_.step(std::min(t, unroll_.length() - 1));
    const std::size_t source = step.first_output + env_;
    for (std::size_t i = 0; i < shape_.spec.action.size(); ++i) {
      const LeafSpec& leaf = shape_.spec.action[i];
      std::uint8_t* const out = batch_.actions[i].data.get() + cell(t) * leaf.row_bytes();
      if (padding) {
        std::memset(out, 0, leaf.row_bytes());
      } else {
        std::memcpy(out, step.action(i, leaf, env_), leaf.row_bytes());
      }
    }
    float* const logits = batch_.policy_logits.as<float>() + cell(t) * shape_.num_logits;
    for (std::size_t i = 0; i < shape_.num_logits; ++i) {
      logits[i] = padding ? 0.0F : step.outputs->policy_logits[source * shape_.num_logits + i];
    }
    batch_.baseline.as<float>()[cell(t)] = padding ? 0.0F : step.outputs->baseline[source];
    batch_.policy_version.as<std::int64_t>()[cell(t)] = step.outputs->policy_version;
    batch_.valid.as<bool>()[cell(t)] = unroll_.valid(t, env_);
  }

  const UnrollShape& shape_;
  const Unroll& unroll_;
  const std::uint32_t env_;
  const std::size_t column_;
  const std::size_t batch_size_;
  RolloutBatch& batch_;
};

}  // namespace

RolloutBatch GatherRollouts(const std::vector<FinishedUnroll>& unrolls, const UnrollShape& shape, BufferPool& buffers) {
  RolloutBatch batch = Allocate(unrolls.size(), shape, buffers);
  for (std::size_t column = 0; column < unrolls.size(); ++column) {
    ColumnWriter(shape, unrolls[column], column, unrolls.size(), batch).Write();
    batch.task.as<std::int64_t>()[column] = static_cast<std::int64_t>(unrolls[column].task);
    batch.num_transitions += unrolls[column].num_valid;
  }
  return batch;
}

}  // namespace kubebeast
