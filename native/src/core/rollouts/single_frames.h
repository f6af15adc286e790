// Frames that leave the core once each, and where a stack finds its own: the stacks are made where the model is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rollouts/unroll.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// The frames of one environment's rows 0 .. T of an unroll, in the order in which they come up, each once: consecutive
// rows share frames, and those of an episode's first stack that are equal byte by byte are one.
class FrameColumn {
 public:
  // Rows behind the unroll's last one repeat it.
  FrameColumn(const Unroll& unroll, std::uint32_t env, std::size_t leaf, const LeafSpec& spec,
              std::size_t unroll_length);

  // They live as long as the unroll.
  const std::vector<const std::uint8_t*>& frames() const { return frames_; }
  // [T+1, frame_stack]: places in frames(), those of a row's oldest frame first.
  const std::vector<std::int32_t>& index() const { return index_; }

 private:
  // A row whose stack is that of the row before, without its oldest frame and with a newer one.
  void MoveUp(const std::uint8_t* newest, std::size_t frame_stack);
  void AddStack(std::span<const std::uint8_t* const> stack, std::size_t frame_bytes);
  void Add(const std::uint8_t* frame);

  std::vector<const std::uint8_t*> frames_;
  std::vector<std::int32_t> index_;
};

// Frames of a column in a training batch: those of T+1 rows and of the stack before row 0, or more where a column has
// more distinct ones.
std::size_t NumFrameRows(const std::vector<FrameColumn>& columns, const LeafSpec& spec, std::size_t unroll_length);

// Copies the frames of B columns as [num_rows, B, *shape], zeros where a column has fewer, and their index as
// [T+1, B, frame_stack].
void CopyFrames(const std::vector<FrameColumn>& columns, std::size_t frame_bytes, std::size_t num_rows,
                std::uint8_t* frames, std::size_t frame_stack, std::int32_t* index);

// Copies the newest frame of every environment of a step.
void CopyNewestFrames(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, std::uint8_t* out);

// Copies the whole stacks of those environments whose row is the first of an episode; returns their number.
std::size_t CopyFirstStacks(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, std::uint8_t* out);

}  // namespace kubebeast
