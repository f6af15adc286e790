// Common parts of the tests of rollouts: environments in which every value encodes its environment and step.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "rollouts/unroll.h"

namespace kubebeast {

inline constexpr std::uint32_t kStack = 3;

// Leaf 0: a stack of 3 int32 scalars. Leaf 1: two float32. Action leaf 0: an int64; leaf 1: two float32.
inline EnvSpec RolloutSpec() {
  EnvSpec spec;
  spec.env_id = "Counter-v0";
  spec.observation = {{.path = "count", .dtype = DType::kInt32, .shape = {}, .frame_stack = kStack},
                      {.path = "pair", .dtype = DType::kFloat32, .shape = {2}}};
  spec.action = {{.path = "choice", .dtype = DType::kInt64, .shape = {}},
                 {.path = "force", .dtype = DType::kFloat32, .shape = {2}}};
  return spec;
}

inline std::shared_ptr<const UnrollShape> TestShape(std::size_t unroll_length) {
  return std::make_shared<const UnrollShape>(UnrollShape{.spec = RolloutSpec(),
                                                         .unroll_length = unroll_length,
                                                         .num_logits = 2,
                                                         .core_state_size = 2,
                                                         .interleaved = {false, false}});
}

// Returns the newest frame of environment `env` at `step`. Frames before an episode's first one are negative.
inline std::int32_t FrameValue(std::uint32_t env, std::int64_t step) {
  return static_cast<std::int32_t>(1000 * (env + 1) + step);
}

// Episodes of environment `env` end every seventh step, by turns terminated and truncated.
inline bool IsFinal(std::uint32_t env, std::int64_t step) { return step > 0 && (step + 3 * env) % 7 == 6; }
inline bool IsTerminated(std::uint32_t env, std::int64_t step) { return IsFinal(env, step) && step % 2 == 0; }
inline bool IsFirst(std::uint32_t env, std::int64_t step) { return step == 0 || IsFinal(env, step - 1); }

struct StepFlags {
  std::vector<std::uint8_t> is_first;
  std::vector<std::uint8_t> terminated;
  std::vector<std::uint8_t> truncated;
  std::vector<std::uint8_t> interrupted = {};
  std::vector<std::uint8_t> waiting = {};
};

// Returns one decoded step of environments first_env, first_env + 1, ... Frames of an is_first row: -v - 1, -v, v for
// the newest frame v.
inline std::shared_ptr<const ObservationRows> MakeObservation(std::uint64_t step, const StepFlags& flags,
                                                              std::uint32_t first_env = 0) {
  const auto rows = std::make_shared<ObservationRows>();
  const std::size_t num_envs = flags.is_first.size();
  rows->step = step;
  rows->is_first = flags.is_first;
  rows->terminated = flags.terminated.empty() ? std::vector<std::uint8_t>(num_envs) : flags.terminated;
  rows->truncated = flags.truncated.empty() ? std::vector<std::uint8_t>(num_envs) : flags.truncated;
  rows->interrupted = flags.interrupted.empty() ? std::vector<std::uint8_t>(num_envs) : flags.interrupted;
  rows->waiting = flags.waiting;
  std::vector<std::int32_t> frames;
  std::vector<float> pairs;
  rows->leaves.resize(2);
  for (std::uint32_t env = 0; env < num_envs; ++env) {
    const std::int32_t value = FrameValue(first_env + env, static_cast<std::int64_t>(step));
    rows->rewards.push_back(flags.is_first[env] || rows->interrupted[env] ? 0.0F : static_cast<float>(value));
    rows->leaves[0].offsets.push_back(frames.size() * sizeof(std::int32_t));
    rows->leaves[1].offsets.push_back(pairs.size() * sizeof(float));
    if (flags.is_first[env]) frames.insert(frames.end(), {-value - 1, -value});
    frames.push_back(value);
    pairs.insert(pairs.end(), {static_cast<float>(value), 0.5F});
  }
  const auto store = [](ObservationRows::Leaf& leaf, const auto& values) {
    const std::size_t bytes = values.size() * sizeof(values[0]);
    leaf.data = std::make_unique<std::uint8_t[]>(bytes);
    std::memcpy(leaf.data.get(), values.data(), bytes);
  };
  store(rows->leaves[0], frames);
  store(rows->leaves[1], pairs);
  return rows;
}

// Model of the tests: all of its outputs follow from the newest frame v.
inline std::int64_t ChoiceFor(std::int32_t frame) { return 2 * std::int64_t{frame} + 1; }
inline float ForceFor(std::int32_t frame) { return static_cast<float>(frame) + 0.25F; }
inline float LogitFor(std::int32_t frame, int i) { return static_cast<float>(frame) + static_cast<float>(i) / 2; }
inline float BaselineFor(std::int32_t frame) { return -static_cast<float>(frame); }

inline std::shared_ptr<const ModelOutputs> Think(const std::vector<std::int32_t>& frames, std::int64_t policy_version) {
  const auto outputs = std::make_shared<ModelOutputs>();
  std::vector<std::int64_t> choices;
  std::vector<float> forces;
  for (const std::int32_t frame : frames) {
    choices.push_back(ChoiceFor(frame));
    forces.insert(forces.end(), {ForceFor(frame), -ForceFor(frame)});
    outputs->policy_logits.insert(outputs->policy_logits.end(), {LogitFor(frame, 0), LogitFor(frame, 1)});
    outputs->baseline.push_back(BaselineFor(frame));
  }
  const auto bytes = [](const auto& values) {
    const auto* const data = reinterpret_cast<const std::uint8_t*>(values.data());
    return std::vector<std::uint8_t>(data, data + values.size() * sizeof(values[0]));
  };
  outputs->actions = {bytes(choices), bytes(forces)};
  outputs->policy_version = policy_version;
  return outputs;
}

}  // namespace kubebeast
