#include "rollouts/single_frames.h"

#include <algorithm>
#include <cstring>

#include "rollouts/frame_stack.h"

namespace kubebeast {

FrameColumn::FrameColumn(const Unroll& unroll, std::uint32_t env, std::size_t leaf, const LeafSpec& spec,
                         std::size_t unroll_length) {
  const std::size_t k = spec.frame_stack;
  const std::size_t frame_bytes = spec.frame_bytes();
  frames_.reserve(unroll_length + k);
  index_.reserve((unroll_length + 1) * k);
  std::vector<const std::uint8_t*> stack(k);
  for (std::size_t t = 0; t <= unroll.length(); ++t) {
    const ObservationRows& block = *unroll.step(t).observation;
    if (t > 0 && block.is_first[env] == 0) {
      MoveUp(block.frames(leaf, env), k);
    } else {
      FindFrames(unroll.upto(t), leaf, frame_bytes, env, stack);
      AddStack(stack, frame_bytes);
    }
  }
  while (index_.size() < (unroll_length + 1) * k) index_.push_back(index_[index_.size() - k]);
}

void FrameColumn::MoveUp(const std::uint8_t* newest, std::size_t frame_stack) {
  for (std::size_t j = 1; j < frame_stack; ++j) index_.push_back(index_[index_.size() - frame_stack + 1]);
  Add(newest);
}

void FrameColumn::AddStack(std::span<const std::uint8_t* const> stack, std::size_t frame_bytes) {
  for (std::size_t j = 0; j < stack.size(); ++j) {
    // Frames of one environment are adjacent if they came in one message.
    const bool of_one_message = j > 0 && stack[j] == stack[j - 1] + frame_bytes;
    if (of_one_message && std::memcmp(stack[j], stack[j - 1], frame_bytes) == 0) {
      index_.push_back(index_.back());
    } else {
      Add(stack[j]);
    }
  }
}

void FrameColumn::Add(const std::uint8_t* frame) {
  index_.push_back(static_cast<std::int32_t>(frames_.size()));
  frames_.push_back(frame);
}

std::size_t NumFrameRows(const std::vector<FrameColumn>& columns, const LeafSpec& spec, std::size_t unroll_length) {
  std::size_t num_rows = unroll_length + spec.frame_stack;
  for (const FrameColumn& column : columns) num_rows = std::max(num_rows, column.frames().size());
  return num_rows;
}

void CopyFrames(const std::vector<FrameColumn>& columns, std::size_t frame_bytes, std::size_t num_rows,
                std::uint8_t* frames, std::size_t frame_stack, std::int32_t* index) {
  // Row after row, in memory order of the batch.
  for (std::size_t row = 0; row < num_rows; ++row) {
    for (const FrameColumn& column : columns) {
      if (row < column.frames().size()) {
        std::memcpy(frames, column.frames()[row], frame_bytes);
      } else {
        std::memset(frames, 0, frame_bytes);
      }
      frames += frame_bytes;
    }
  }
  const std::size_t num_rows_of_model = columns.front().index().size() / frame_stack;
  for (std::size_t t = 0; t < num_rows_of_model; ++t) {
    for (const FrameColumn& column : columns) {
      index = std::copy_n(column.index().begin() + static_cast<std::ptrdiff_t>(t * frame_stack), frame_stack, index);
    }
  }
}

void CopyNewestFrames(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                      std::uint8_t* out) {
  const std::size_t frame_bytes = spec.frame_bytes();
  const std::uint8_t* const is_first = step.is_first.data() + envs.first;
  if (std::count(is_first, is_first + envs.count, 0) == envs.count) {
    // The message holds one frame of each environment, all adjacent.
    std::memcpy(out, step.frames(leaf, envs.first), envs.count * frame_bytes);
    return;
  }
  for (std::uint32_t env = envs.first; env < envs.end(); ++env, out += frame_bytes) {
    const std::size_t older = step.is_first[env] != 0 ? spec.frame_stack - 1 : 0;
    std::memcpy(out, step.frames(leaf, env) + older * frame_bytes, frame_bytes);
  }
}

std::size_t CopyFirstStacks(const ObservationRows& step, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                            std::uint8_t* out) {
  std::size_t count = 0;
  for (std::uint32_t env = envs.first; env < envs.end(); ++env) {
    if (step.is_first[env] == 0) continue;
    std::memcpy(out + count * spec.row_bytes(), step.frames(leaf, env), spec.row_bytes());
    ++count;
  }
  return count;
}

}  // namespace kubebeast
