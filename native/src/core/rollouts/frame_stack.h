// Frame stacks: the newest frames of an environment, as input of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "rollouts/unroll.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// Returns InvalidArgument, with its name, for an interleaved leaf that is no stack of bytes, or a wrong number of
// flags.
absl::Status CheckInterleaved(const std::vector<bool>& interleaved, const std::vector<LeafSpec>& leaves);

// Finds the frames in the environment's stack at the last of `steps`, the oldest first, as many as `stack` holds: the
// newest one and older ones, back to the episode's first row. The pointers are valid as long as the steps.
void FindFrames(std::span<const VectorStep> steps, std::size_t leaf, std::size_t frame_bytes, std::uint32_t env,
                std::span<const std::uint8_t*> stack);

// Copies the stacks of `envs` at the last of `steps`, one environment after the other, row_bytes() each. If
// interleaved, the k bytes of one place in the frames are adjacent, [*shape, frame_stack], like the channels of an
// image for a convolution: this takes no longer than a copy of frame after frame, whereas to transpose a stack takes
// four times as long as to convert its bytes to numbers.
void CopyStacks(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                bool interleaved, std::uint8_t* out);

}  // namespace kubebeast
