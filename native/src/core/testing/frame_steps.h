// Steps of one environment with a single leaf of numbered frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rollouts/unroll.h"

namespace kubebeast {

// Returns one byte of the numbered frame.
inline std::uint8_t FrameByte(std::uint8_t frame, std::size_t place, std::size_t frame_bytes) {
  return static_cast<std::uint8_t>(frame * frame_bytes + place);
}

// Returns a step with a message of these frames: a whole stack if it is the first of an episode.
inline VectorStep FrameStep(const std::vector<std::uint8_t>& frames, bool is_first, std::size_t frame_bytes) {
  const auto rows = std::make_shared<ObservationRows>();
  rows->rewards = {0.0F};
  rows->is_first = {is_first};
  rows->leaves.resize(1);
  rows->leaves[0].offsets = {0};
  rows->leaves[0].data = std::make_unique<std::uint8_t[]>(frames.size() * frame_bytes);
  for (std::size_t j = 0; j < frames.size(); ++j) {
    for (std::size_t i = 0; i < frame_bytes; ++i) {
      rows->leaves[0].data[j * frame_bytes + i] = FrameByte(frames[j], i, frame_bytes);
    }
  }
  return {.observation = rows, .outputs = nullptr, .first_output = 0};
}

}  // namespace kubebeast
