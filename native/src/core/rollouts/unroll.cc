#include "rollouts/unroll.h"

#include <algorithm>
#include <cstring>

namespace kubebeast {

std::size_t UnrollShape::history() const {
  std::size_t steps = 1;
  for (const LeafSpec& leaf : spec.observation) steps = std::max<std::size_t>(steps, leaf.frame_stack - 1);
  return steps;
}

void CopyStack(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, std::uint32_t env,
               std::uint8_t* out) {
  const std::size_t frame_bytes = spec.frame_bytes();
  std::size_t missing = spec.frame_stack;
  for (std::size_t i = steps.size(); missing > 0; --i) {
    const ObservationRows& block = *steps[i - 1].observation;
    const std::uint8_t* const frames = block.frames(leaf, env);
    if (block.is_first[env]) {
      // The block holds a whole stack here; its newest frames fill what is missing.
      std::memcpy(out, frames + (spec.frame_stack - missing) * frame_bytes, missing * frame_bytes);
      return;
    }
    --missing;
    std::memcpy(out + missing * frame_bytes, frames, frame_bytes);
  }
}

void CopyLastAction(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, std::uint32_t env,
                    std::uint8_t* out) {
  if (steps.back().observation->is_first[env]) {
    std::memset(out, 0, spec.row_bytes());
  } else {
    std::memcpy(out, steps[steps.size() - 2].action(leaf, spec, env), spec.row_bytes());
  }
}

std::size_t Unroll::num_valid(std::uint32_t env) const {
  std::size_t count = 0;
  for (std::size_t t = 0; t < length(); ++t) count += valid(t, env) ? 1 : 0;
  return count;
}

}  // namespace kubebeast
