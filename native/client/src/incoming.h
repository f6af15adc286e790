// Messages from the learner: ActResponse. None of its input is trusted.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tensors/tensor_spec.h"
#include "wire/learner_texts.h"

namespace kubebeast::client {

struct Welcome {
  std::string run_id;
  std::vector<std::uint64_t> compression;
  std::uint64_t protocol_version = 0;
  std::uint64_t protocol_minor = 0;
  std::vector<std::string> log_info;
  std::vector<EpisodeOptions> episode_options;
};

struct Actions {
  std::uint64_t step = 0;
  bool traced = false;
  std::vector<EpisodeOptions> episode_options;
};

using Response = std::variant<Welcome, Actions>;

// Memory for the actions of a step, at the same place for every step.
class ActionMemory {
 public:
  // leaves: of the action, valid ones.
  ActionMemory(std::vector<kubebeast::LeafSpec> leaves, std::uint32_t num_envs);

  // Returns the leaves of an environment.
  std::span<const std::span<const std::byte>> of(std::uint32_t env) const {
    return {views_.data() + env * leaves_.size(), leaves_.size()};
  }

  std::size_t num_envs() const { return num_envs_; }
  std::size_t num_leaves() const { return leaves_.size(); }
  std::size_t leaf_bytes(std::size_t leaf) const { return num_envs_ * leaves_[leaf].frame_bytes(); }
  std::uint8_t* data(std::size_t leaf) { return reinterpret_cast<std::uint8_t*>(data_[leaf].get()); }
  // Returns InvalidArgument if the written leaf holds a category out of range or a number that is not finite.
  absl::Status Check(std::size_t leaf) const;

 private:
  const std::vector<kubebeast::LeafSpec> leaves_;
  const std::size_t num_envs_;
  std::vector<std::unique_ptr<std::byte[]>> data_;  // aligned for every element type
  std::vector<std::span<const std::byte>> views_;   // [num_envs, leaves]
};

// Decodes a message. Actions overwrite `actions`. Returns InvalidArgument if it breaks the contract, as far as the
// message alone shows.
absl::StatusOr<Response> DecodeResponse(grpc::ByteBuffer* message, ActionMemory* actions);

}  // namespace kubebeast::client
