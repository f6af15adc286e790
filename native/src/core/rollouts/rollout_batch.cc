#include "rollouts/rollout_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rollouts/frame_stack.h"
#include "rollouts/single_frames.h"

namespace kubebeast {
namespace {

constexpr std::int64_t kOriginRows = 3;

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
    // The number of single frames is not known yet.
    const std::size_t rows = shape.has_single_frames(i) ? 0 : length + 1;
    batch.observation.push_back(make(shape.spec.observation[i].dtype, rows, shape.observation_shape(i)));
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
  batch.origin = buffers.Allocate(DType::kInt64, {kOriginRows, static_cast<std::int64_t>(batch_size)});
  return batch;
}

// Environments of one unroll with adjacent columns.
struct Run {
  const Unroll* unroll = nullptr;
  EnvRange envs;
  std::size_t column = 0;  // column of the first environment
};

std::vector<Run> FindRuns(const std::vector<FinishedUnroll>& unrolls) {
  std::vector<Run> runs;
  for (std::size_t column = 0; column < unrolls.size(); ++column) {
    const FinishedUnroll& next = unrolls[column];
    if (!runs.empty() && runs.back().unroll == next.unroll.get() && runs.back().envs.end() == next.env) {
      ++runs.back().envs.count;
    } else {
      runs.push_back({.unroll = next.unroll.get(), .envs = {.first = next.env, .count = 1}, .column = column});
    }
  }
  return runs;
}

// Copies bytes, or clears them; `source` may be null if there are none.
void CopyOrClear(const void* source, std::size_t bytes, bool clear, void* out) {
  if (bytes == 0) return;
  if (clear) {
    std::memset(out, 0, bytes);
  } else {
    std::memcpy(out, source, bytes);
  }
}

// Writer of row t of a run. Its cells are adjacent in the batch, as their contents are in a step.
class RowWriter {
 public:
  RowWriter(const UnrollShape& shape, const Run& run, std::size_t t, std::size_t batch_size, RolloutBatch& batch)
      : shape_(shape),
        unroll_(*run.unroll),
        envs_(run.envs),
        t_(t),
        cell_(t * batch_size + run.column),
        batch_(batch) {}

  void Write() {
    WriteObservation();
    WriteFlags();
    if (t_ < shape_.unroll_length) WriteOutputs();
  }

 private:
  void WriteObservation() {
    const auto steps = unroll_.upto(std::min(t_, unroll_.length()));
    for (std::size_t i = 0; i < shape_.spec.observation.size(); ++i) {
      if (shape_.has_single_frames(i)) continue;
      const LeafSpec& leaf = shape_.spec.observation[i];
      std::uint8_t* const out = batch_.observation[i].data.get() + cell_ * leaf.row_bytes();
      CopyStacks(steps, i, leaf, envs_, shape_.interleaved[i], out);
    }
    for (std::size_t i = 0; i < shape_.spec.action.size(); ++i) {
      const LeafSpec& leaf = shape_.spec.action[i];
      CopyLastActions(steps, i, leaf, envs_, batch_.last_actions[i].data.get() + cell_ * leaf.row_bytes());
    }
  }

  void WriteFlags() {
    const bool padding = t_ > unroll_.length();
    const VectorStep& step = unroll_.step(std::min(t_, unroll_.length()));
    const ObservationRows& block = *step.observation;
    float* const rewards = batch_.rewards.as<float>() + cell_;
    bool* const terminated = batch_.terminated.as<bool>() + cell_;
    bool* const truncated = batch_.truncated.as<bool>() + cell_;
    bool* const is_first = batch_.is_first.as<bool>() + cell_;
    for (std::uint32_t i = 0; i < envs_.count; ++i) {
      const std::uint32_t env = envs_.first + i;
      const bool ends = t_ == unroll_.length() && !step.is_final(env);
      rewards[i] = padding ? 0.0F : block.rewards[env];
      terminated[i] = !padding && (block.terminated[env] != 0 || (ends && unroll_.end == Unroll::End::kTerminated));
      truncated[i] = !padding && (block.truncated[env] != 0 || (ends && unroll_.end == Unroll::End::kTruncated));
      is_first[i] = !padding && block.is_first[env] != 0;
    }
  }

  void WriteOutputs() {
    const bool padding = t_ >= unroll_.length();
    const VectorStep& step = unroll_.step(std::min(t_, unroll_.length() - 1));
    const ModelOutputs& outputs = *step.outputs;
    const std::size_t source = step.first_output + envs_.first;
    const std::size_t count = envs_.count;
    for (std::size_t i = 0; i < shape_.spec.action.size(); ++i) {
      const std::size_t row_bytes = shape_.spec.action[i].row_bytes();
      CopyOrClear(step.actions(i, row_bytes, envs_.first), count * row_bytes, padding,
                  batch_.actions[i].data.get() + cell_ * row_bytes);
    }
    CopyOrClear(outputs.policy_logits.data() + source * shape_.num_logits, count * shape_.num_logits * sizeof(float),
                padding, batch_.policy_logits.as<float>() + cell_ * shape_.num_logits);
    CopyOrClear(outputs.baseline.data() + source, count * sizeof(float), padding, batch_.baseline.as<float>() + cell_);
    std::fill_n(batch_.policy_version.as<std::int64_t>() + cell_, count, outputs.policy_version);
    bool* const valid = batch_.valid.as<bool>() + cell_;
    for (std::uint32_t i = 0; i < envs_.count; ++i) valid[i] = unroll_.valid(t_, envs_.first + i);
  }

  const UnrollShape& shape_;
  const Unroll& unroll_;
  const EnvRange envs_;
  const std::size_t t_;
  const std::size_t cell_;  // cell of the run's first column
  RolloutBatch& batch_;
};

void WriteSingleFrames(const std::vector<FinishedUnroll>& unrolls, const UnrollShape& shape, BufferPool& buffers,
                       RolloutBatch& batch) {
  for (std::size_t i = 0; i < shape.spec.observation.size(); ++i) {
    const LeafSpec& leaf = shape.spec.observation[i];
    const std::size_t k = shape.has_single_frames(i) ? leaf.frame_stack : 0;
    const std::vector<std::int64_t> stack{static_cast<std::int64_t>(k)};
    batch.frame_index.push_back(
        buffers.Allocate(DType::kInt32, Prepend(shape.unroll_length + 1, unrolls.size(), stack)));
    if (k == 0) continue;
    std::vector<FrameColumn> columns;
    columns.reserve(unrolls.size());
    for (const FinishedUnroll& each : unrolls) {
      columns.emplace_back(*each.unroll, each.env, i, leaf, shape.unroll_length);
    }
    const std::size_t num_rows = NumFrameRows(columns, leaf, shape.unroll_length);
    batch.observation[i] = buffers.Allocate(leaf.dtype, Prepend(num_rows, unrolls.size(), leaf.shape));
    CopyFrames(columns, leaf.frame_bytes(), num_rows, batch.observation[i].data.get(), k,
               batch.frame_index[i].as<std::int32_t>());
  }
}

// Copies to core_state, the batch's array [B, core_state_size].
void CopyCoreStates(const Run& run, std::size_t core_state_size, float* core_state) {
  const auto first = static_cast<std::ptrdiff_t>((run.envs.first - run.unroll->envs.first) * core_state_size);
  std::copy_n(run.unroll->core_state.begin() + first, run.envs.count * core_state_size,
              core_state + run.column * core_state_size);
}

}  // namespace

RolloutBatch GatherRollouts(const std::vector<FinishedUnroll>& unrolls, const UnrollShape& shape, BufferPool& buffers) {
  RolloutBatch batch = Allocate(unrolls.size(), shape, buffers);
  const std::vector<Run> runs = FindRuns(unrolls);
  // Row after row, in memory order of the batch.
  for (std::size_t t = 0; t <= shape.unroll_length; ++t) {
    for (const Run& run : runs) RowWriter(shape, run, t, unrolls.size(), batch).Write();
  }
  if (shape.single_frames) WriteSingleFrames(unrolls, shape, buffers, batch);
  for (const Run& run : runs) CopyCoreStates(run, shape.core_state_size, batch.core_state.as<float>());
  for (std::size_t column = 0; column < unrolls.size(); ++column) {
    batch.task.as<std::int64_t>()[column] = static_cast<std::int64_t>(unrolls[column].task);
    batch.num_transitions += unrolls[column].num_valid;
    std::int64_t* const origin = batch.origin.as<std::int64_t>() + column;
    origin[0] = unrolls[column].unroll->stream;
    origin[unrolls.size()] = unrolls[column].env;
    origin[2 * unrolls.size()] = unrolls[column].unroll->number;
  }
  return batch;
}

}  // namespace kubebeast
