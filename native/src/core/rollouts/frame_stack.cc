#include "rollouts/frame_stack.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kubebeast {
namespace {

using Frames = std::array<const std::uint8_t*, kMaxFrameStack>;

// Has one store per frame, for k frames: the compiler does not vectorize a loop over them.
template <std::size_t... j>
void InterleaveFew(const Frames& stack, std::size_t frame_bytes, std::uint8_t* __restrict out,
                   std::index_sequence<j...> /*places*/) {
  const std::array<const std::uint8_t*, sizeof...(j)> frames{stack[j]...};
  for (std::size_t i = 0; i < frame_bytes; ++i) ((out[i * sizeof...(j) + j] = frames[j][i]), ...);
}

void Interleave(const Frames& stack, std::size_t num_frames, std::size_t frame_bytes, std::uint8_t* __restrict out) {
  switch (num_frames) {
    case 2:
      return InterleaveFew(stack, frame_bytes, out, std::make_index_sequence<2>());
    case 3:
      return InterleaveFew(stack, frame_bytes, out, std::make_index_sequence<3>());
    case 4:
      return InterleaveFew(stack, frame_bytes, out, std::make_index_sequence<4>());
    default:
      for (std::size_t j = 0; j < num_frames; ++j) {
        for (std::size_t i = 0; i < frame_bytes; ++i) out[i * num_frames + j] = stack[j][i];
      }
  }
}

}  // namespace

absl::Status CheckInterleaved(const std::vector<bool>& interleaved, const std::vector<LeafSpec>& leaves) {
  if (interleaved.size() != leaves.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("interleaved has ", interleaved.size(), " flags for ", leaves.size(), " leaves"));
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const bool is_stack_of_bytes = leaves[i].frame_stack > 1 && ItemSize(leaves[i].dtype) == 1;
    if (interleaved[i] && !is_stack_of_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("interleaved[", i, "] is true: ", leaves[i].ToString(), " is no stack of bytes"));
    }
  }
  return absl::OkStatus();
}

void FindFrames(std::span<const VectorStep> steps, std::size_t leaf, std::size_t frame_bytes, std::uint32_t env,
                std::span<const std::uint8_t*> stack) {
  std::size_t missing = stack.size();
  for (std::size_t i = steps.size(); missing > 0; --i) {
    const ObservationRows& block = *steps[i - 1].observation;
    const std::uint8_t* const frames = block.frames(leaf, env);
    if (block.is_first[env]) {
      // The block holds a whole stack here; its newest frames fill the gap.
      const std::size_t skipped = stack.size() - missing;
      for (std::size_t j = 0; j < missing; ++j) stack[j] = frames + (skipped + j) * frame_bytes;
      break;
    }
    stack[--missing] = frames;
  }
}

void CopyStacks(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                bool interleaved, std::uint8_t* out) {
  const std::size_t num_frames = spec.frame_stack;
  const std::size_t frame_bytes = spec.frame_bytes();
  if (num_frames == 1) {
    // A message holds one frame of each environment, all adjacent.
    std::memcpy(out, steps.back().observation->frames(leaf, envs.first), envs.count * frame_bytes);
    return;
  }
  for (std::uint32_t env = envs.first; env < envs.end(); ++env, out += num_frames * frame_bytes) {
    Frames stack;
    FindFrames(steps, leaf, frame_bytes, env, std::span(stack).first(num_frames));
    if (interleaved) {
      Interleave(stack, num_frames, frame_bytes, out);
    } else {
      for (std::size_t j = 0; j < num_frames; ++j) std::memcpy(out + j * frame_bytes, stack[j], frame_bytes);
    }
  }
}

}  // namespace kubebeast
