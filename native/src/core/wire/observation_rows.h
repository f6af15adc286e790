// Decoded observations of a stream's environments in one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kubebeast {

struct EpisodeEnd {
  std::uint32_t env = 0;
  double episode_return = 0;
  std::uint64_t length = 0;
  std::vector<double> info;  // one for each entry of Welcome.log_info, NaN without a number; or empty
};

// One vector step, decoded. Immutable once decoded and shared by all objects that refer to its frames: a rollout keeps
// pointers into it until the rollout has been copied into a training batch.
struct ObservationRows {
  std::uint64_t step = 0;
  std::vector<float> rewards;             // [B]
  std::vector<std::uint8_t> terminated;   // [B], 0 or 1
  std::vector<std::uint8_t> truncated;    // [B], 0 or 1
  std::vector<std::uint8_t> is_first;     // [B], 0 or 1
  std::vector<std::uint8_t> interrupted;  // [B], 0 or 1: the row only keeps its place; with is_first: absent
  std::vector<std::uint8_t> waiting;      // [B], 0 or 1: another agent's turn; [0] if agents take none
  std::vector<EpisodeEnd> episodes;
  std::uint64_t env_us = 0;  // computing time of the environments; 0: not reported

  std::uint32_t num_envs() const { return static_cast<std::uint32_t>(rewards.size()); }
  // Returns the frames of environment `env` in this message, oldest first: frame_stack of them if is_first, else one.
  const std::uint8_t* frames(std::size_t leaf, std::uint32_t env) const {
    return leaves[leaf].data.get() + leaves[leaf].offsets[env];
  }

  struct Leaf {
    std::unique_ptr<std::uint8_t[]> data;
    std::vector<std::size_t> offsets;  // [B], bytes
  };
  std::vector<Leaf> leaves;
};

}  // namespace kubebeast
