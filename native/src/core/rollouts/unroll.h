// Vector steps of one stream over time, and the unrolls made of them. All of these types refer to immutable blocks, so
// frames are copied only once after decoding: into the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensors/tensor_spec.h"
#include "wire/observation_rows.h"

namespace kubebeast {

// The range of environments first .. first + count of a stream.
struct EnvRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return first + count; }
};

// Sizes common to all unrolls of a pool.
struct UnrollShape {
  EnvSpec spec;
  std::size_t unroll_length = 0;  // T; if 0, there are no unrolls
  std::size_t num_logits = 0;
  std::size_t core_state_size = 0;  // float32 values per environment
  std::vector<bool> interleaved;    // per observation leaf: true if it leaves as [*shape, frame_stack], not row_shape()
  bool single_frames = false;       // true if stacks leave the core as single frames, once each, of the leaf's shape

  // Returns true if the leaf's frames leave the core once each, for stacks that are built elsewhere.
  bool has_single_frames(std::size_t leaf) const { return single_frames && spec.observation[leaf].frame_stack > 1; }
  // Returns the shape of one row of an observation leaf, or of a single frame, as it leaves the core.
  std::vector<std::int64_t> observation_shape(std::size_t leaf) const;
  // Returns the number of steps before step 0 that an unroll needs: for frame stacks and the action that led to step 0.
  std::size_t history() const;
};

// The model's outputs for the N rows of one inference batch, shared by its streams.
struct ModelOutputs {
  std::vector<std::vector<std::uint8_t>> actions;  // per action leaf: [N, *shape]
  std::vector<float> policy_logits;                // [N, num_logits]
  std::vector<float> baseline;                     // [N]
  std::int64_t policy_version = 0;
  std::vector<std::int64_t> opponents;  // [N], the opponent that acted, or -1 for the policy; empty if all are -1
};

// One vector step of B environments with the model's outputs for it. Environment i is row first_output + i of the
// outputs, modulo 2^64: they may hold rows of the last environments only.
struct VectorStep {
  std::shared_ptr<const ObservationRows> observation;
  std::shared_ptr<const ModelOutputs> outputs;  // null until the inference is done
  std::size_t first_output = 0;

  bool is_final(std::uint32_t env) const { return observation->terminated[env] || observation->truncated[env]; }
  bool is_interrupted(std::uint32_t env) const { return observation->interrupted[env] != 0; }
  // Returns the actions of environment `env` and those after it, row_bytes each; the step must have outputs.
  const std::uint8_t* actions(std::size_t leaf, std::size_t row_bytes, std::uint32_t env) const {
    return outputs->actions[leaf].data() + (first_output + env) * row_bytes;
  }
};

// Copies the actions that led to the last of `steps`, one environment after the other; zeros if is_first.
void CopyLastActions(std::span<const VectorStep> steps, std::size_t leaf, const LeafSpec& spec, EnvRange envs,
                     std::uint8_t* out);

// Steps 0 .. length of `envs`, B environments of a stream; length == T unless the stream ended early. Of an agent that
// takes turns, they are the steps at which it does not wait.
struct Unroll {
  // End of the stream, if it ended: the flag that the last row of a running episode gets.
  enum class End { kNone, kTruncated, kTerminated };

  EnvRange envs;
  std::vector<VectorStep> steps;  // history, then steps 0 .. length
  std::size_t origin = 0;         // index of step 0
  End end = End::kNone;
  std::vector<float> core_state;  // [B, core_state_size] before step 0
  std::int64_t stream = 0;        // number of the stream in its pool
  std::int64_t number = 0;        // number of the unroll in its stream

  std::size_t length() const { return steps.size() - origin - 1; }
  const VectorStep& step(std::size_t t) const { return steps[origin + t]; }
  // Returns the steps up to and including step t.
  std::span<const VectorStep> upto(std::size_t t) const { return std::span(steps).first(origin + t + 1); }
  // Returns true if the environment's action at step t led to its row of step t + 1.
  bool valid(std::size_t t, std::uint32_t env) const {
    return t < length() && !step(t).is_final(env) && !step(t + 1).is_interrupted(env);
  }
  std::size_t num_valid(std::uint32_t env) const;
  // Returns the version of the weights that acted at step 0, the oldest.
  std::int64_t policy_version() const { return step(0).outputs->policy_version; }
};

}  // namespace kubebeast
