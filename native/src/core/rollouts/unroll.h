// One stream's rows in time: what an unroll is made of. Everything here refers to immutable blocks, so frames are
// copied only once more after decoding: into the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/tensor_spec.h"
#include "wire/wire_codec.h"

namespace kubebeast {

// The sizes that all unrolls of a pool share.
struct UnrollShape {
  EnvSpec spec;
  std::size_t unroll_length = 0;  // T
  std::size_t num_logits = 0;
  std::size_t core_state_size = 0;  // float32 values an environment

  // Rows before row 0 that an unroll refers to: for the frame stacks and the action that led to row 0.
  std::size_t history() const;
};

// What the model said about the N rows of one inference batch, shared by its streams.
struct ModelOutputs {
  std::vector<std::vector<std::uint8_t>> actions;  // one entry an action leaf, [N, *shape]
  std::vector<float> policy_logits;                // [N, num_logits]
  std::vector<float> baseline;                     // [N]
  std::int64_t policy_version = 0;
};

// One vector step of B environments. Environment i is row first_output + i of the outputs.
struct Row {
  std::shared_ptr<const ObservationRows> observation;
  std::shared_ptr<const ModelOutputs> outputs;  // null until the model has answered
  std::size_t first_output = 0;

  bool is_final(std::uint32_t env) const { return observation->terminated[env] || observation->truncated[env]; }
  bool is_interrupted(std::uint32_t env) const { return observation->interrupted[env] != 0; }
  // The action of environment `env`; the row must have outputs.
  const std::uint8_t* action(std::size_t leaf, const LeafSpec& spec, std::uint32_t env) const {
    return outputs->actions[leaf].data() + (first_output + env) * spec.row_bytes();
  }
};

// Copies what the model sees of the last of `rows`, row_bytes() of it: its frame and, back to the episode's first row,
// as many older ones as the stack holds.
void CopyStack(std::span<const Row> rows, std::size_t leaf, const LeafSpec& spec, std::uint32_t env, std::uint8_t* out);

// Copies the action that led to the last of `rows`; zeros where is_first.
void CopyLastAction(std::span<const Row> rows, std::size_t leaf, const LeafSpec& spec, std::uint32_t env,
                    std::uint8_t* out);

// Rows 0 .. num_steps of B environments, num_steps == T unless the stream ended early.
struct Unroll {
  // How the stream ended, if it did: what the last row of a running episode counts as.
  enum class End { kNone, kTruncated, kTerminated };

  std::vector<Row> rows;   // history, then rows 0 .. num_steps
  std::size_t origin = 0;  // index of row 0
  End end = End::kNone;
  std::vector<float> core_state;  // [B, core_state_size] before row 0

  std::size_t num_steps() const { return rows.size() - origin - 1; }
  std::uint32_t num_envs() const { return rows.back().observation->num_envs(); }
  const Row& row(std::size_t t) const { return rows[origin + t]; }
  // Rows up to and including row t.
  std::span<const Row> upto(std::size_t t) const { return std::span(rows).first(origin + t + 1); }
  // Whether the action at row t led to row t + 1.
  bool valid(std::size_t t, std::uint32_t env) const {
    return t < num_steps() && !row(t).is_final(env) && !row(t + 1).is_interrupted(env);
  }
  std::size_t num_valid(std::uint32_t env) const;
  // Version of the weights that acted at row 0, the oldest.
  std::int64_t policy_version() const { return row(0).outputs->policy_version; }
};

}  // namespace kubebeast
