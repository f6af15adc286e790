#include "learner.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <utility>

#include "rollouts/rollout_batch.h"
#include "script.h"

namespace kubebeast::fuzz {
namespace {

void RequireMemory(const Array& array) {
  std::size_t size = ItemSize(array.dtype);
  for (const std::int64_t dim : array.shape) size *= static_cast<std::size_t>(dim);
  Require(__asan_region_is_poisoned(array.data.get(), size) == nullptr, "an array has the memory that its shape needs");
}

template <typename... Arrays>
void RequireMemory(const Array& first, const Arrays&... others) {
  RequireMemory(first);
  RequireMemory(others...);
}

std::size_t Count(const Array& flags, std::size_t size) {
  return static_cast<std::size_t>(std::count(flags.as<bool>(), flags.as<bool>() + size, true));
}

}  // namespace

bool Learner::TakeInference() {
  auto batch = pool_->batcher.Pop(Clock::time_point::min());
  if (!batch.ok()) return false;
  taken_.push_back(
      std::make_unique<InferenceBatch>(std::move(batch->items), pool_->registry.shape(), *buffers_, pool_->stats));
  const InferenceBatch& taken = *taken_.back();
  for (const Array& leaf : taken.observation) RequireMemory(leaf);
  for (const Array& leaf : taken.last_actions) RequireMemory(leaf);
  RequireMemory(taken.rewards, taken.terminated, taken.truncated, taken.is_first, taken.slots, taken.unroll_start,
                taken.opponent);
  Require(taken.num_rows() == batch->num_rows, "a batch has the rows that were counted");
  Require(Count(taken.unroll_start, taken.num_rows()) == taken.num_unroll_starts(), "unroll starts are counted");
  std::vector<bool> waits(pool_->options.max_envs);
  for (const auto& other : taken_) {
    for (std::size_t row = 0; row < other->num_rows(); ++row) {
      const auto slot = static_cast<std::size_t>(other->slots.as<std::int32_t>()[row]);
      Require(!waits.at(slot), "a slot waits for one answer at a time");
      waits[slot] = true;
    }
  }
  return true;
}

void Learner::Answer(std::size_t i) {
  const auto batch = std::move(taken_[i]);
  taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
  const std::size_t num_rows = batch->num_rows();
  std::vector<std::int64_t> choices(num_rows);
  ++num_answers_;
  for (std::size_t row = 0; row < num_rows; ++row) {
    const std::int32_t slot = batch->slots.as<std::int32_t>()[row];
    choices[row] = actions_[slot] = 100 * num_answers_ + slot;
  }
  const UnrollShape& shape = batch->shape();
  const std::vector<float> logits(num_rows * shape.num_logits, 0.5F);
  const std::vector<float> baseline(num_rows, -1.0F);
  const std::vector<float> core_state(batch->num_unroll_starts() * shape.core_state_size, 2.0F);
  Require(batch
              ->Answer({.actions = {reinterpret_cast<const std::uint8_t*>(choices.data())},
                        .policy_logits = logits.data(),
                        .baseline = baseline.data(),
                        .policy_version = policy_version_,
                        .core_state = core_state.data()})
              .ok(),
          "a batch is answered once");
}

void Learner::Drop(std::size_t i) {
  const auto dropped = std::move(taken_[i]);
  taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
}

bool Learner::TakeRollouts(std::int64_t max_policy_lag) {
  const std::int64_t min_policy_version = std::max<std::int64_t>(policy_version_ - max_policy_lag, 0);
  const auto unrolls = pool_->rollouts.Pop(pool_->options.batch_size, Clock::time_point::min(), min_policy_version);
  if (!unrolls.ok()) return false;
  for (const FinishedUnroll& unroll : *unrolls) {
    Require(unroll.unroll->policy_version() >= min_policy_version, "no rollout is older than asked for");
    Require(unroll.num_valid > 0, "every rollout has a valid transition");
  }
  const RolloutBatch batch = GatherRollouts(*unrolls, *pool_->registry.shape(), *buffers_);
  for (const Array& leaf : batch.observation) RequireMemory(leaf);
  for (const Array& leaf : batch.last_actions) RequireMemory(leaf);
  for (const Array& leaf : batch.actions) RequireMemory(leaf);
  RequireMemory(batch.rewards, batch.terminated, batch.truncated, batch.is_first, batch.policy_logits, batch.baseline,
                batch.policy_version, batch.valid, batch.core_state);
  const std::size_t num_transitions = pool_->options.unroll_length * pool_->options.batch_size;
  Require(Count(batch.valid, num_transitions) == batch.num_transitions, "valid transitions are counted");
  return true;
}

}  // namespace kubebeast::fuzz
