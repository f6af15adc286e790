// The frames that a model sees of an environment at one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "rollouts/unroll.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// InvalidArgument names the leaf that cannot be interleaved, as it is no stack of bytes, or a wrong number of flags.
absl::Status CheckInterleaved(const std::vector<bool>& interleaved, const std::vector<LeafSpec>& leaves);

// The frames that the model sees of an environment at the last of `steps`, the oldest first, as many as `stack` holds:
// its frame and, back to the episode's first row, older ones. They live as long as the steps.
void FindFrames(std::span<const VectorStep> steps, std::size_t leaf, std::size_t frame_bytes, std::uint32_t env,
                std::span<const std::uint8_t*> stack);

// Copies, of one environment after the other, what the model sees of it at the last of `steps`, row_bytes().
// Interleaved, the bytes of a place in the frames lie side by side, [*shape, frame_stack], as channels of an image do
// for a convolution: this takes no longer than copying frame by frame, and transposing a stack takes four times as long
// as converting its bytes to numbers.
void CopyStacks(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                bool interleaved, std::uint8_t* out);

}  // namespace kubebeast
