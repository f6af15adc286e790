#include "inference/inference_batch.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "rollouts/frame_stack.h"
#include "rollouts/single_frames.h"

namespace kubebeast {
namespace {

// Returns rows first .. first + count of an array, in its memory.
Array RowsOf(const Array& array, std::size_t first, std::size_t count) {
  const LeafSpec row{.path = "", .dtype = array.dtype, .shape = {array.shape.begin() + 1, array.shape.end()}};
  Array rows{array.dtype, array.shape, {array.data, array.data.get() + first * row.row_bytes()}};
  rows.shape[0] = static_cast<std::int64_t>(count);
  return rows;
}

}  // namespace

std::size_t PendingStep::num_rows() const {
  std::size_t count = 0;
  for (const PendingRows& rows : parts) count += rows.num_rows();
  return count;
}

std::size_t PendingStep::num_unroll_starts() const {
  std::size_t count = 0;
  for (const PendingRows& rows : parts) count += rows.unroll_start ? rows.num_rows() : 0;
  return count;
}

InferenceBatch::InferenceBatch(std::vector<PendingStep> steps, std::shared_ptr<const UnrollShape> shape,
                               std::shared_ptr<Stats> stats)
    : steps_(std::move(steps)), shape_(std::move(shape)), stats_(std::move(stats)) {}

// The destructor runs, and abandons the actors, even if this body throws: the delegated constructor has finished.
InferenceBatch::InferenceBatch(std::vector<PendingStep> steps, std::shared_ptr<const UnrollShape> shape,
                               BufferPool& buffers, std::shared_ptr<Stats> stats)
    : InferenceBatch(std::move(steps), std::move(shape), std::move(stats)) {
  record_.taken = Clock::now();
  for (const PendingStep& step : steps_) {
    stats_->histograms.inference_queue_wait.Observe(record_.taken - step.since);
    record_.num_rows += step.num_rows();
    num_unroll_starts_ += step.num_unroll_starts();
  }
  const auto make = [&](DType dtype, std::vector<std::int64_t> row_shape = {}) {
    row_shape.insert(row_shape.begin(), static_cast<std::int64_t>(num_rows()));
    return buffers.Allocate(dtype, std::move(row_shape));
  };
  for (std::size_t i = 0; i < shape_->spec.observation.size(); ++i) {
    observation.push_back(make(shape_->spec.observation[i].dtype, shape_->observation_shape(i)));
  }
  for (const LeafSpec& leaf : shape_->spec.action) last_actions.push_back(make(leaf.dtype, leaf.row_shape()));
  rewards = make(DType::kFloat32);
  terminated = make(DType::kBool);
  truncated = make(DType::kBool);
  is_first = make(DType::kBool);
  interrupted = make(DType::kBool);
  slots = make(DType::kInt32);
  unroll_start = make(DType::kBool);
  task = make(DType::kInt64);
  opponent = make(DType::kBool);

  std::size_t first_row = 0;
  for (const PendingStep& step : steps_) {
    for (const PendingRows& rows : step.parts) {
      Gather(step, rows, first_row);
      first_row += rows.num_rows();
    }
  }
  if (shape_->single_frames) GatherFirstStacks(buffers);
  record_.gathered = Clock::now();
  stats_->histograms.inference_batch_rows.Observe(static_cast<double>(num_rows()));
  stats_->histograms.inference_gather.Observe(record_.gathered - record_.taken);
}

InferenceBatch::~InferenceBatch() {
  if (answered_) return;
  ++stats_->inference_dropped;
  for (const PendingStep& step : steps_) step.actor->Abandon();
}

void InferenceBatch::Gather(const PendingStep& step, const PendingRows& rows, std::size_t first_row) {
  const std::span<const VectorStep> steps = rows.unroll->steps;
  const ObservationRows& block = *steps.back().observation;
  const EnvRange envs = rows.unroll->envs;
  for (std::size_t i = 0; i < shape_->spec.observation.size(); ++i) {
    const LeafSpec& leaf = shape_->spec.observation[i];
    if (shape_->has_single_frames(i)) {
      CopyNewestFrames(block, i, leaf, envs, observation[i].data.get() + first_row * leaf.frame_bytes());
      continue;
    }
    std::uint8_t* const out = observation[i].data.get() + first_row * leaf.row_bytes();
    CopyStacks(steps, i, leaf, envs, shape_->interleaved[i], out);
  }
  for (std::size_t i = 0; i < shape_->spec.action.size(); ++i) {
    const LeafSpec& leaf = shape_->spec.action[i];
    CopyLastActions(steps, i, leaf, envs, last_actions[i].data.get() + first_row * leaf.row_bytes());
  }
  const auto copy = [&](const auto& column, auto* out) {
    std::copy_n(column.begin() + envs.first, envs.count, out + first_row);
  };
  copy(block.rewards, rewards.as<float>());
  copy(block.terminated, terminated.data.get());
  copy(block.truncated, truncated.data.get());
  copy(block.is_first, is_first.data.get());
  copy(block.interrupted, interrupted.data.get());
  copy(step.actor->slots(), slots.as<std::int32_t>());
  std::fill_n(unroll_start.as<bool>() + first_row, envs.count, rows.unroll_start);
  std::fill_n(task.as<std::int64_t>() + first_row, envs.count, static_cast<std::int64_t>(step.task));
  std::fill_n(opponent.as<bool>() + first_row, envs.count, rows.opponent);
}

void InferenceBatch::GatherFirstStacks(BufferPool& buffers) {
  const std::int64_t num_first = std::count(is_first.as<bool>(), is_first.as<bool>() + num_rows(), true);
  for (std::size_t i = 0; i < shape_->spec.observation.size(); ++i) {
    const LeafSpec& leaf = shape_->spec.observation[i];
    const bool has_stacks = shape_->has_single_frames(i);
    std::vector<std::int64_t> shape = leaf.row_shape();
    shape.insert(shape.begin(), has_stacks ? num_first : 0);
    first_stacks.push_back(buffers.Allocate(leaf.dtype, std::move(shape)));
    if (!has_stacks) continue;
    std::uint8_t* out = first_stacks[i].data.get();
    for (const PendingStep& step : steps_) {
      for (const PendingRows& rows : step.parts) {
        const ObservationRows& block = *rows.unroll->steps.back().observation;
        out += leaf.row_bytes() * CopyFirstStacks(block, i, leaf, rows.unroll->envs, out);
      }
    }
  }
}

std::shared_ptr<const ModelOutputs> InferenceBatch::Copy(const Reply& reply) const {
  auto outputs = std::make_shared<ModelOutputs>();
  for (std::size_t i = 0; i < shape_->spec.action.size(); ++i) {
    const std::size_t bytes = num_rows() * shape_->spec.action[i].row_bytes();
    outputs->actions.emplace_back(reply.actions[i], reply.actions[i] + bytes);
  }
  outputs->policy_logits.assign(reply.policy_logits, reply.policy_logits + num_rows() * shape_->num_logits);
  outputs->baseline.assign(reply.baseline, reply.baseline + num_rows());
  outputs->policy_version = reply.policy_version;
  if (reply.opponents != nullptr) outputs->opponents.assign(reply.opponents, reply.opponents + num_rows());
  return outputs;
}

absl::Status InferenceBatch::Answer(const Reply& reply) {
  if (answered_) return absl::FailedPreconditionError("the batch was answered before");
  const Clock::time_point now = Clock::now();
  const std::shared_ptr<const ModelOutputs> outputs = Copy(reply);
  answered_ = true;
  record_.answered = now;
  record_.policy_version = reply.policy_version;
  stats_->histograms.inference_model.Observe(record_.answered - record_.gathered);

  std::size_t first_row = 0;
  const float* core_state = reply.core_state;
  for (const PendingStep& step : steps_) {
    const std::size_t num_rows = step.num_rows();
    const std::size_t num_starts = step.num_unroll_starts();
    try {
      step.actor->Act(outputs, first_row, num_starts > 0 ? core_state : nullptr, record_);
    } catch (const std::exception&) {
      step.actor->Abandon();
    }
    first_row += num_rows;
    if (num_starts > 0) core_state += num_starts * shape_->core_state_size;
  }
  steps_.clear();
  stats_->histograms.inference_reply.Observe(Clock::now() - record_.answered);
  return absl::OkStatus();
}

std::vector<Array*> InferenceBatch::arrays() {
  std::vector<Array*> all{&rewards, &terminated,   &truncated, &is_first, &interrupted,
                          &slots,   &unroll_start, &task,      &opponent};
  for (Array& leaf : observation) all.push_back(&leaf);
  for (Array& leaf : last_actions) all.push_back(&leaf);
  return all;
}

absl::StatusOr<std::vector<std::unique_ptr<InferenceBatch>>> InferenceBatch::Split() {
  if (answered_) return absl::FailedPreconditionError("the batch was answered before");
  if (shape_->single_frames) return absl::FailedPreconditionError("batches of single frames are not split");
  std::vector<std::unique_ptr<InferenceBatch>> parts;
  parts.reserve(steps_.size());
  std::size_t first_row = 0;
  for (const PendingStep& step : steps_) {
    std::vector<PendingStep> own{step};
    auto part = std::unique_ptr<InferenceBatch>(new InferenceBatch(std::move(own), shape_, stats_));
    part->record_ = record_;
    part->record_.num_rows = step.num_rows();
    part->num_unroll_starts_ = step.num_unroll_starts();
    part->observation.resize(observation.size());
    part->last_actions.resize(last_actions.size());
    const std::vector<Array*> whole = arrays();
    const std::vector<Array*> rows = part->arrays();
    for (std::size_t i = 0; i < whole.size(); ++i) *rows[i] = RowsOf(*whole[i], first_row, step.num_rows());
    first_row += step.num_rows();
    parts.push_back(std::move(part));
  }
  answered_ = true;
  steps_.clear();
  return parts;
}

}  // namespace kubebeast
