// One stream's vector steps in time: what an unroll is made of. Everything here refers to immutable blocks, so frames
// are copied only once more after decoding: into the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensors/tensor_spec.h"
#include "wire/observation_rows.h"

namespace kubebeast {

// Environments first .. first + count of a stream.
struct EnvRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return first + count; }
};

// The sizes that all unrolls of a pool share.
struct UnrollShape {
  EnvSpec spec;
  std::size_t unroll_length = 0;  // T; 0: there are no unrolls
  std::size_t num_logits = 0;
  std::size_t core_state_size = 0;  // float32 values an environment
  std::vector<bool> interleaved;    // observation leaves that come as [*shape, frame_stack] in place of row_shape()
  bool single_frames = false;       // stacks leave the core as their frames, each once, of the leaf's shape

  // Whether a leaf's frames leave the core once each, for stacks that are made elsewhere.
  bool has_single_frames(std::size_t leaf) const { return single_frames && spec.observation[leaf].frame_stack > 1; }
  // The shape of one row of an observation leaf, or of a single frame, as it leaves the core.
  std::vector<std::int64_t> observation_shape(std::size_t leaf) const;
  // Steps before step 0 that an unroll refers to: for the frame stacks and the action that led to step 0.
  std::size_t history() const;
};

// What the model said about the N rows of one inference batch, shared by its streams.
struct ModelOutputs {
  std::vector<std::vector<std::uint8_t>> actions;  // one entry an action leaf, [N, *shape]
  std::vector<float> policy_logits;                // [N, num_logits]
  std::vector<float> baseline;                     // [N]
  std::int64_t policy_version = 0;
};

// One vector step of B environments, and what the model made of it. Environment i is row first_output + i of the
// outputs.
struct VectorStep {
  std::shared_ptr<const ObservationRows> observation;
  std::shared_ptr<const ModelOutputs> outputs;  // null until the model has answered
  std::size_t first_output = 0;

  bool is_final(std::uint32_t env) const { return observation->terminated[env] || observation->truncated[env]; }
  bool is_interrupted(std::uint32_t env) const { return observation->interrupted[env] != 0; }
  // The actions of environment `env` and those after it, row_bytes each; the step must have outputs.
  const std::uint8_t* actions(std::size_t leaf, std::size_t row_bytes, std::uint32_t env) const {
    return outputs->actions[leaf].data() + (first_output + env) * row_bytes;
  }
};

// Copies, of one environment after the other, the action that led to the last of `steps`; zeros where is_first.
void CopyLastActions(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                     std::uint8_t* out);

// Steps 0 .. length of B environments, length == T unless the stream ended early.
struct Unroll {
  // How the stream ended, if it did: what the last row of a running episode counts as.
  enum class End { kNone, kTruncated, kTerminated };

  std::vector<VectorStep> steps;  // history, then steps 0 .. length
  std::size_t origin = 0;         // index of step 0
  End end = End::kNone;
  std::vector<float> core_state;  // [B, core_state_size] before step 0

  std::size_t length() const { return steps.size() - origin - 1; }
  std::uint32_t num_envs() const { return steps.back().observation->num_envs(); }
  const VectorStep& step(std::size_t t) const { return steps[origin + t]; }
  // Steps up to and including step t.
  std::span<const VectorStep> upto(std::size_t t) const { return std::span(steps).first(origin + t + 1); }
  // Whether the environment's action at step t led to its row of step t + 1.
  bool valid(std::size_t t, std::uint32_t env) const {
    return t < length() && !step(t).is_final(env) && !step(t + 1).is_interrupted(env);
  }
  std::size_t num_valid(std::uint32_t env) const;
  // Version of the weights that acted at step 0, the oldest.
  std::int64_t policy_version() const { return step(0).outputs->policy_version; }
};

}  // namespace kubebeast
