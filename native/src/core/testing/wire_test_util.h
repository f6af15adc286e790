// Common parts of the codec tests: a stream of three environments and its messages, built with the stock stubs.
#pragma once

#include <gtest/gtest.h>
#include <lz4.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "tensors/tensor_spec.h"
#include "wire/wire_codec.h"

namespace kubebeast {

inline constexpr std::uint32_t kTestEnvs = 3;

// Leaf 0: stacked frames of 4 x 5 bytes. Leaf 1: two floats. Actions: one category of 6.
inline EnvSpec TestSpec() {
  EnvSpec spec;
  spec.observation = {{.path = "image", .dtype = DType::kUint8, .shape = {4, 5}, .frame_stack = 4},
                      {.path = "speed", .dtype = DType::kFloat32, .shape = {2}}};
  spec.action = {{.path = "", .dtype = DType::kInt64, .shape = {}, .num_categories = 6}};
  return spec;
}

// Returns bytes that compress, and differ from their neighbors and from other seeds.
inline std::string TestBytes(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i / 8 * 7 + seed);
  return bytes;
}

inline std::string Lz4(const std::string& bytes) {
  std::string block(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes.size()))), '\0');
  block.resize(static_cast<std::size_t>(LZ4_compress_default(bytes.data(), block.data(), static_cast<int>(bytes.size()),
                                                             static_cast<int>(block.size()))));
  return block;
}

inline std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Returns a valid Observations message for TestSpec; flags are one byte per environment.
inline v1::ActRequest TestStep(std::uint64_t step, const std::vector<std::uint8_t>& is_first) {
  std::size_t num_frames = 0;
  for (const std::uint8_t first : is_first) num_frames += first != 0 ? 4 : 1;
  v1::ActRequest request;
  v1::Observations& message = *request.mutable_observations();
  message.set_step(step);
  message.add_leaves(TestBytes(num_frames * 20, static_cast<unsigned>(step)));
  message.add_leaves(TestBytes(kTestEnvs * 8, static_cast<unsigned>(step) + 1));
  std::vector<float> rewards;
  rewards.reserve(is_first.size());
  for (const std::uint8_t first : is_first) rewards.push_back(first != 0 ? 0.0F : 0.5F + static_cast<float>(step));
  message.set_rewards(Floats(rewards));
  message.set_terminated(std::string(kTestEnvs, '\0'));
  message.set_truncated(std::string(kTestEnvs, '\0'));
  message.set_is_first(std::string(is_first.begin(), is_first.end()));
  return request;
}

inline v1::ActRequest FirstStep() { return TestStep(0, {1, 1, 1}); }

// Returns step 1 of a stream, in which environment 1 ends.
inline v1::ActRequest StepInWhichEnv1Ends() {
  v1::ActRequest request = TestStep(1, {0, 0, 0});
  request.mutable_observations()->set_terminated(std::string("\0\1\0", 3));
  v1::Episode& episode = *request.mutable_observations()->add_episodes();
  episode.set_env(1);
  episode.set_episode_return(-21.0F);
  episode.set_length(1000);
  return request;
}

// is_first in the step after one in which environment 1 ended.
inline const std::vector<std::uint8_t> kOnlyEnv1 = {0, 1, 0};

inline StreamCodec TestCodec(Compression compression = Compression::kNone, WireLimits limits = {}) {
  return {{.num_envs = kTestEnvs, .spec = TestSpec(), .compression = {compression, Compression::kNone}}, limits};
}

// Decodes `bytes` from slices of `slice_size` bytes; -1 is one slice.
inline absl::StatusOr<Request> Decode(StreamCodec& codec, const std::string& bytes, int slice_size = -1) {
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  return codec.Decode(&input, bytes.size());
}

inline absl::StatusOr<Request> Decode(StreamCodec& codec, const v1::ActRequest& message, int slice_size = -1) {
  return Decode(codec, message.SerializeAsString(), slice_size);
}

using Rows = std::shared_ptr<const ObservationRows>;

// Decodes an Observations message that must be accepted; otherwise returns null and fails the test.
inline Rows DecodeRows(StreamCodec& codec, const v1::ActRequest& message, int slice_size = -1) {
  auto request = Decode(codec, message, slice_size);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? std::get<Rows>(*std::move(request)) : nullptr;
}

}  // namespace kubebeast
