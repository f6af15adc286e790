// Tests with hostile bytes: no input may crash the codec, make it read out of bounds or allocate memory beyond the
// spec's limits. Reads out of bounds are found under the asan preset.
#include <gtest/gtest.h>

#include <random>

#include "testing/wire_test_util.h"
#include "wire/handshake_codec.h"

namespace kubebeast {
namespace {

constexpr int kNumMutations = 20'000;

std::string FullStep(Compression compression) {
  v1::ActRequest message = FirstStep();
  v1::Observations& observations = *message.mutable_observations();
  if (compression == Compression::kLz4) observations.set_leaves(0, Lz4(observations.leaves(0)));
  v1::Episode& episode = *observations.add_episodes();
  episode.set_env(2);
  episode.set_episode_return(1.5F);
  episode.set_length(1'000'000);
  episode.add_info(1.0);
  episode.add_info(-0.5);
  return message.SerializeAsString();
}

std::string FullHello() {
  v1::ActRequest message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_env_server_id("env-server-0");
  hello.set_instance_id("1f0c");
  hello.set_num_envs(32);
  v1::LeafSpec& observation = *hello.add_observation();
  observation.set_dtype(v1::DTYPE_UINT8);
  observation.add_shape(84);
  observation.set_frame_stack(4);
  hello.add_action()->set_dtype(v1::DTYPE_INT64);
  hello.add_offered_compression(v1::COMPRESSION_LZ4);
  return message.SerializeAsString();
}

bool HelloIsAccepted(const std::string& bytes, int slice_size) {
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  return DecodeHello(&input, bytes.size(), {}).ok();
}

// Flips, overwrites, removes, repeats or inserts bytes at one to four random places.
std::string Mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&random](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  for (std::size_t count = 1 + below(4); count > 0 && !bytes.empty(); --count) {
    const std::size_t at = below(bytes.size());
    const auto value = static_cast<char>(below(256));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ 1U << below(8));
        break;
      case 1:
        bytes[at] = value;
        break;
      case 2:
        bytes.erase(at, 1 + below(8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 1 + below(16)));
        break;
      default:
        bytes.insert(at, 1 + below(3), value);
        break;
    }
  }
  return bytes;
}

class WireCodecFuzzTest : public testing::TestWithParam<Compression> {};

TEST_P(WireCodecFuzzTest, RejectsEveryTruncationOfAStep) {
  const std::string bytes = FullStep(GetParam());
  for (const int slice_size : {1, 5, -1}) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      StreamCodec codec = TestCodec(GetParam(), {.num_info = 2});
      EXPECT_FALSE(Decode(codec, bytes.substr(0, size), slice_size).ok()) << size;
    }
    StreamCodec codec = TestCodec(GetParam(), {.num_info = 2});
    EXPECT_TRUE(Decode(codec, bytes, slice_size).ok());
  }
}

TEST_P(WireCodecFuzzTest, RejectsAStepThatEndsBeforeItsAnnouncedSize) {
  const std::string bytes = FullStep(GetParam());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(size), 7);
    StreamCodec codec = TestCodec(GetParam(), {.num_info = 2});
    EXPECT_FALSE(codec.Decode(&input, bytes.size()).ok()) << size;
  }
}

TEST_P(WireCodecFuzzTest, SurvivesMutatedSteps) {
  std::mt19937 random(20'240'601);
  const std::string bytes = FullStep(GetParam());
  int num_rejected = 0;
  for (int i = 0; i < kNumMutations; ++i) {
    StreamCodec codec = TestCodec(GetParam(), {.num_info = 2});
    const auto request = Decode(codec, Mutate(bytes, random), i % 8 == 0 ? -1 : i % 8);
    if (!request.ok()) ++num_rejected;
    if (!request.ok() || !std::holds_alternative<Rows>(*request)) continue;
    // Accepted rows can be read in full.
    const auto& rows = *std::get<Rows>(*request);
    const std::string image(reinterpret_cast<const char*>(rows.frames(0, kTestEnvs - 1)), 80);
    EXPECT_EQ(image.size(), 80U);
    EXPECT_EQ(rows.num_envs(), kTestEnvs);
  }
  EXPECT_GT(num_rejected, kNumMutations / 4);
}

INSTANTIATE_TEST_SUITE_P(Compressions, WireCodecFuzzTest, testing::Values(Compression::kNone, Compression::kLz4));

TEST(HelloFuzzTest, RejectsEveryTruncation) {
  const std::string bytes = FullHello();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(HelloIsAccepted(bytes.substr(0, size), 3)) << size;
  EXPECT_TRUE(HelloIsAccepted(bytes, 3));
}

TEST(HelloFuzzTest, SurvivesMutations) {
  std::mt19937 random(20'240'602);
  const std::string bytes = FullHello();
  int num_rejected = 0;
  for (int i = 0; i < kNumMutations; ++i) num_rejected += HelloIsAccepted(Mutate(bytes, random), 1 + i % 7) ? 0 : 1;
  EXPECT_GT(num_rejected, kNumMutations / 4);
}

}  // namespace
}  // namespace kubebeast
