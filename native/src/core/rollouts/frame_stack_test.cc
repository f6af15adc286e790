#include "rollouts/frame_stack.h"

#include <gtest/gtest.h>

#include "testing/frame_steps.h"

namespace kubebeast {
namespace {

constexpr std::size_t kFrameBytes = 37;

LeafSpec Stack(std::uint32_t frame_stack) { return {.path = "image", .shape = {37}, .frame_stack = frame_stack}; }

std::uint8_t Byte(std::uint8_t frame, std::size_t place) { return FrameByte(frame, place, kFrameBytes); }

VectorStep Step(const std::vector<std::uint8_t>& frames, bool is_first) {
  return FrameStep(frames, is_first, kFrameBytes);
}

// Returns an episode of frames 1 .. frame_stack in its first row and one new frame in each row after it.
std::vector<VectorStep> Episode(std::uint8_t frame_stack, std::uint8_t num_steps) {
  std::vector<std::uint8_t> first;
  for (std::uint8_t frame = 1; frame <= frame_stack; ++frame) first.push_back(frame);
  std::vector<VectorStep> steps{Step({100}, false), Step(first, true)};
  for (std::uint8_t step = 1; step < num_steps; ++step) {
    steps.push_back(Step({static_cast<std::uint8_t>(frame_stack + step)}, false));
  }
  return steps;
}

class FrameStackTest : public testing::TestWithParam<std::uint8_t> {};

TEST_P(FrameStackTest, HoldsTheNewestFramesOfTheEpisodeOldestFirst) {
  const std::uint8_t k = GetParam();
  for (const std::uint8_t num_steps : {std::uint8_t{1}, std::uint8_t{2}, static_cast<std::uint8_t>(k + 2)}) {
    std::vector<std::uint8_t> out(k * kFrameBytes);
    CopyStacks(Episode(k, num_steps), 0, Stack(k), {0, 1}, false, out.data());
    for (std::uint8_t j = 0; j < k; ++j) {
      for (std::size_t i = 0; i < kFrameBytes; ++i) {
        ASSERT_EQ(out[j * kFrameBytes + i], Byte(static_cast<std::uint8_t>(num_steps + j), i)) << num_steps;
      }
    }
  }
}

TEST_P(FrameStackTest, InterleavedItHoldsTheSameBytesPlaceByPlace) {
  const std::uint8_t k = GetParam();
  for (const std::uint8_t num_steps : {std::uint8_t{1}, std::uint8_t{2}, static_cast<std::uint8_t>(k + 2)}) {
    std::vector<std::uint8_t> plain(k * kFrameBytes);
    std::vector<std::uint8_t> interleaved(k * kFrameBytes);
    CopyStacks(Episode(k, num_steps), 0, Stack(k), {0, 1}, false, plain.data());
    CopyStacks(Episode(k, num_steps), 0, Stack(k), {0, 1}, true, interleaved.data());
    for (std::uint8_t j = 0; j < k; ++j) {
      for (std::size_t i = 0; i < kFrameBytes; ++i) ASSERT_EQ(interleaved[i * k + j], plain[j * kFrameBytes + i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(StacksOf, FrameStackTest, testing::Values(1, 2, 3, 4, 5));

TEST(CheckInterleavedTest, OnlyStacksOfBytesAre) {
  const std::vector<LeafSpec> leaves{Stack(4), Stack(1), {.path = "x", .dtype = DType::kFloat32, .frame_stack = 4}};
  EXPECT_TRUE(CheckInterleaved({true, false, false}, leaves).ok());
  EXPECT_EQ(CheckInterleaved({true, true, false}, leaves).message(),
            R"(interleaved[1] is true: "image" uint8 [37] is no stack of bytes)");
  EXPECT_EQ(CheckInterleaved({false, false, true}, leaves).message(),
            R"(interleaved[2] is true: "x" float32 [] stack 4 is no stack of bytes)");
  EXPECT_EQ(CheckInterleaved({true}, leaves).message(), "interleaved has 1 flags for 3 leaves");
}

}  // namespace
}  // namespace kubebeast
