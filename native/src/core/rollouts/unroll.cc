#include "rollouts/unroll.h"

#include <algorithm>
#include <cstring>

namespace kubebeast {

std::vector<std::int64_t> UnrollShape::observation_shape(std::size_t leaf) const {
  if (has_single_frames(leaf)) return spec.observation[leaf].shape;
  std::vector<std::int64_t> shape = spec.observation[leaf].row_shape();
  if (interleaved[leaf]) std::rotate(shape.begin(), shape.begin() + 1, shape.end());
  return shape;
}

std::size_t UnrollShape::history() const {
  std::size_t steps = 1;
  for (const LeafSpec& leaf : spec.observation) steps = std::max<std::size_t>(steps, leaf.frame_stack - 1);
  return steps;
}

void CopyLastActions(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                     std::uint8_t* out) {
  const std::size_t row_bytes = spec.row_bytes();
  const std::vector<std::uint8_t>& is_first = steps.back().observation->is_first;
  for (std::uint32_t env = envs.first; env < envs.end(); ++env, out += row_bytes) {
    if (is_first[env] != 0) {
      std::memset(out, 0, row_bytes);
    } else {
      std::memcpy(out, steps[steps.size() - 2].actions(leaf, row_bytes, env), row_bytes);
    }
  }
}

std::size_t Unroll::num_valid(std::uint32_t env) const {
  std::size_t count = 0;
  for (std::size_t t = 0; t < length(); ++t) count += valid(t, env) ? 1 : 0;
  return count;
}

}  // namespace kubebeast
