// The learner's side of a pool, one step at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "inference/inference_batch.h"
#include "stream/pool_context.h"
#include "tensors/array.h"
#include "tensors/buffer_pool.h"

namespace kubebeast::fuzz {

// Learner that takes and answers batches in any order. Requires that no two batches hold the same slot and that every
// batch has all its memory.
class Learner {
 public:
  explicit Learner(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

  // Takes the next inference batch if rows wait; returns false if none do.
  bool TakeInference();
  std::size_t num_taken() const { return taken_.size(); }
  const InferenceBatch& taken(std::size_t i) const { return *taken_[i]; }
  void Answer(std::size_t i);
  void Drop(std::size_t i);

  // Takes a training batch if there are enough rollouts; returns false if there are not.
  bool TakeRollouts(std::int64_t max_policy_lag);
  void Publish() { ++policy_version_; }

  // Returns the model's last action for this slot.
  std::int64_t action(std::int32_t slot) const { return actions_.at(slot); }

 private:
  const std::shared_ptr<PoolContext> pool_;
  const std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  std::vector<std::unique_ptr<InferenceBatch>> taken_;  // not answered yet
  std::map<std::int32_t, std::int64_t> actions_;
  std::int64_t policy_version_ = 1;
  std::int64_t num_answers_ = 0;
};

}  // namespace kubebeast::fuzz
