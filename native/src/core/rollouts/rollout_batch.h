// Assembly of B unrolls into one time-major training batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rollouts/unroll.h"
#include "sync/clock.h"
#include "tensors/array.h"
#include "tensors/buffer_pool.h"

namespace kubebeast {

// The part of a finished unroll that belongs to one environment.
struct FinishedUnroll {
  std::shared_ptr<const Unroll> unroll;
  std::uint32_t env = 0;
  std::size_t num_valid = 0;
  std::size_t task = 0;  // index in Tasks
  Clock::time_point finished_at;
};

// Training batch, as RolloutBatch of _core.pyi: T unroll_length, B unrolls. An unroll that ended early is padded with
// its last row, reward 0 and no flags; its last row is truncated (or terminated) unless its episode ended there.
struct RolloutBatch {
  std::vector<Array> observation;   // per leaf: [T+1, B, *row_shape]; of single frames: [R, B, *shape]
  std::vector<Array> frame_index;   // per leaf: int32 [T+1, B, k], rows of its frames, k = 0 without; empty if whole
  Array rewards;                    // float32 [T+1, B]
  Array terminated;                 // bool [T+1, B]
  Array truncated;                  // bool [T+1, B]
  Array is_first;                   // bool [T+1, B]
  std::vector<Array> last_actions;  // per leaf: [T+1, B, *shape]
  std::vector<Array> actions;       // per leaf: [T, B, *shape]
  Array policy_logits;              // float32 [T, B, num_logits]
  Array baseline;                   // float32 [T, B]
  Array policy_version;             // int64 [T, B]
  Array valid;                      // bool [T, B]
  Array core_state;                 // float32 [B, core_state_size]
  Array task;                       // int64 [B]
  Array origin;                     // int64 [3, B]: stream, environment of the stream, number of the unroll
  std::size_t num_transitions = 0;  // number of valid transitions
};

// Copies the unrolls into a batch, in order.
RolloutBatch GatherRollouts(const std::vector<FinishedUnroll>& unrolls, const UnrollShape& shape, BufferPool& buffers);

}  // namespace kubebeast
