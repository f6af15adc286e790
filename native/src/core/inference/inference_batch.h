// Batch of rows for the model, and delivery of the model's answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollouts/unroll.h"
#include "stats/stats.h"
#include "sync/clock.h"
#include "tensors/array.h"
#include "tensors/buffer_pool.h"

namespace kubebeast {

// Times and size of an answered batch.
struct BatchRecord {
  Clock::time_point taken;
  Clock::time_point gathered;
  Clock::time_point answered;
  std::size_t num_rows = 0;
  std::int64_t policy_version = 0;
};

// Receiver of the model's answer to one vector step. Thread-safe.
class Actor {
 public:
  virtual ~Actor() = default;

  // Returns the slots [B] of all its environments, unique in the pool as long as the actor exists. They never change.
  virtual const std::vector<std::int32_t>& slots() const = 0;

  // Delivers the answer: rows first_output and following of `outputs`, one for each pending row. core_state
  // [num_unroll_starts, core_state_size] belongs to the rows that begin an unroll, and is null if none does. Does
  // nothing after the actor's end. Never blocks.
  virtual void Act(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state,
                   const BatchRecord& batch) = 0;

  // Ends the actor, as there will be no answer.
  virtual void Abandon() = 0;
};

// Rows of adjacent environments that wait for actions.
struct PendingRows {
  std::shared_ptr<const Unroll> unroll;  // ends with the step to act on, until that is answered
  bool unroll_start = false;
  bool opponent = false;

  std::size_t num_rows() const { return unroll->envs.count; }
};

// One vector step that waits for actions.
struct PendingStep {
  std::shared_ptr<Actor> actor;
  std::span<const PendingRows> parts;  // the actor's, valid until Act; none for environments that wait for others
  Clock::time_point since;             // start of the wait
  std::size_t task = 0;                // index in Tasks
  std::size_t num_steps = 0;           // valid transitions that it ends, over all environments

  std::size_t num_rows() const;
  // Returns the number of rows that begin an unroll.
  std::size_t num_unroll_starts() const;
};

// The N rows of some vector steps, gathered for the model. Not thread-safe, except that any thread may destroy it. A
// batch that is destroyed without an answer, or finds no memory for its rows, abandons its actors.
class InferenceBatch {
 public:
  InferenceBatch(std::vector<PendingStep> steps, std::shared_ptr<const UnrollShape> shape, BufferPool& buffers,
                 std::shared_ptr<Stats> stats);
  ~InferenceBatch();
  InferenceBatch(const InferenceBatch&) = delete;
  InferenceBatch& operator=(const InferenceBatch&) = delete;

  std::vector<Array> observation;   // per leaf: [N, *row_shape]; if of single frames: [N, *shape], the newest
  std::vector<Array> first_stacks;  // per leaf of single frames: [M, *row_shape] of the M rows that are first
  Array rewards;                    // float32 [N]
  Array terminated;                 // bool [N]
  Array truncated;                  // bool [N]
  Array is_first;                   // bool [N]
  Array interrupted;                // bool [N]
  std::vector<Array> last_actions;  // per leaf: [N, *shape]
  Array slots;                      // int32 [N]
  Array unroll_start;               // bool [N]
  Array task;                       // int64 [N]
  Array opponent;                   // bool [N]: not the learning agent's row

  const UnrollShape& shape() const { return *shape_; }
  std::size_t num_rows() const { return record_.num_rows; }
  std::size_t num_unroll_starts() const { return num_unroll_starts_; }

  // The model's answer, contiguous, in row order.
  struct Reply {
    std::vector<const std::uint8_t*> actions;  // per leaf: [N, *shape]
    const float* policy_logits = nullptr;      // [N, num_logits]
    const float* baseline = nullptr;           // [N]
    std::int64_t policy_version = 0;
    const float* core_state = nullptr;        // [num_unroll_starts, core_state_size]
    const std::int64_t* opponents = nullptr;  // [N], as in ModelOutputs; null if all are -1
  };

  // Copies the answer and hands it to the actors; returns FailedPrecondition on a second call. Throws if the copy finds
  // no memory, and leaves the batch unanswered; abandons an actor that cannot take its answer. Never blocks.
  absl::Status Answer(const Reply& reply);

  // Splits the batch into one for each actor. They share the memory of this batch and are answered separately; this
  // batch counts as answered. Returns FailedPrecondition if it was answered before, or has single frames.
  absl::StatusOr<std::vector<std::unique_ptr<InferenceBatch>>> Split();

 private:
  InferenceBatch(std::vector<PendingStep> steps, std::shared_ptr<const UnrollShape> shape,
                 std::shared_ptr<Stats> stats);
  // Returns every array with N rows.
  std::vector<Array*> arrays();
  void Gather(const PendingStep& step, const PendingRows& rows, std::size_t first_row);
  void GatherFirstStacks(BufferPool& buffers);
  std::shared_ptr<const ModelOutputs> Copy(const Reply& reply) const;

  std::vector<PendingStep> steps_;
  const std::shared_ptr<const UnrollShape> shape_;
  const std::shared_ptr<Stats> stats_;
  std::size_t num_unroll_starts_ = 0;
  BatchRecord record_;
  std::atomic<bool> answered_ = false;
};

}  // namespace kubebeast
