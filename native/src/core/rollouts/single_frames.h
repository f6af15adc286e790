// Frames that leave the core once each, with indices from which the stacks are rebuilt beside the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rollouts/unroll.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// Distinct frames of one environment in rows 0 .. T of an unroll, in order of appearance: consecutive rows share
// frames, and byte-identical frames in an episode's first stack count as one.
class FrameColumn {
 public:
  // Rows after the unroll's last one repeat it.
  FrameColumn(const Unroll& unroll, std::uint32_t env, std::size_t leaf, const LeafSpec& spec,
              std::size_t unroll_length);

  // Pointers to the frames, valid as long as the unroll.
  const std::vector<const std::uint8_t*>& frames() const { return frames_; }
  // Returns [T+1, frame_stack] indices into frames(), the oldest frame of each row first.
  const std::vector<std::int32_t>& index() const { return index_; }

 private:
  // Adds a row that has the stack of the row before, without its oldest frame and with a newer one.
  void MoveUp(const std::uint8_t* newest, std::size_t frame_stack);
  void AddStack(std::span<const std::uint8_t* const> stack, std::size_t frame_bytes);
  void Add(const std::uint8_t* frame);

  std::vector<const std::uint8_t*> frames_;
  std::vector<std::int32_t> index_;
};

// Returns the number of frame rows per column in a training batch: those of T+1 rows and of the stack before row 0, or
// more if a column has more distinct frames.
std::size_t NumFrameRows(const std::vector<FrameColumn>& columns, const LeafSpec& spec, std::size_t unroll_length);

// Copies the frames of B columns as [num_rows, B, *shape], padded with zeros if a column has fewer, and their indices
// as [T+1, B, frame_stack].
void CopyFrames(const std::vector<FrameColumn>& columns, std::size_t frame_bytes, std::size_t num_rows,
                std::uint8_t* frames, std::size_t frame_stack, std::int32_t* index);

// Copies the newest frame of each of `envs` in a step.
void CopyNewestFrames(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                      std::uint8_t* out);

// Copies the whole stacks of those of `envs` that are in the first row of an episode; returns their number.
std::size_t CopyFirstStacks(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                            std::uint8_t* out);

}  // namespace kubebeast
