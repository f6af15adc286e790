// Operations of the core for counts of instructions: always the same, on synthetic Atari frames.
#pragma once

#include <cstddef>
#include <functional>

namespace kubebeast::instructions {

inline constexpr std::size_t kFrameBytes = std::size_t{84} * 84;
inline constexpr std::size_t kFrameStack = 4;

// One prepared operation: each call runs it once more.
using Operation = std::function<void()>;

// Decodes an Observations message of 32 environments, one LZ4 block of 84 x 84 frames. For `times` calls.
Operation Decode(std::size_t times);
// Submits a step in each of 64 streams of one environment, and takes them in two batches.
Operation Batch();
// Gathers 8 unrolls of 20 steps, stacks of four frames, into a training batch: the whole stacks, for a model on a CPU,
// or each frame once, for a GPU.
Operation Gather(bool single_frames);

// Returns byte `i` of a frame: most are equal to their neighbors, as in a game.
inline char FrameByte(std::size_t i, std::size_t step) {
  return static_cast<char>(i % 97 < 90 ? 87 : (i * 31 + step * 7) % 200);
}

// Ends the program if `holds` is false: failed operations must not be counted.
void Require(bool holds, const char* what);

}  // namespace kubebeast::instructions
