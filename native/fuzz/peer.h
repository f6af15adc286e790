// The env-server's side of a stream: messages that are valid in its state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "script.h"
#include "tensors/tensor_spec.h"
#include "wire/handshake_codec.h"

namespace kubebeast::fuzz {

// Keys that the learner logs.
inline constexpr std::size_t kNumInfo = 2;

// Returns the Hello for these specs and compressions, one per observation leaf.
// takes_turns: the rows are agents of environments with two agents each, or of one if their number is odd.
v1::ActRequest MakeHello(const EnvSpec& spec, std::uint32_t num_envs, const std::vector<Compression>& offered,
                         bool takes_turns = false);

v1::ActRequest MakeBye(Script& script);

// Returns the bytes of a leaf without compression.
std::string Plain(const std::string& wire_bytes, Compression compression, std::size_t size);

// State of a stream as the learner accepted it, from which valid next steps are made.
class Peer {
 public:
  explicit Peer(Hello hello);

  const Hello& hello() const { return hello_; }
  std::uint64_t next_step() const { return next_step_; }
  // Returns true if the next step must open an episode of this environment.
  bool is_due(std::uint32_t env) const { return due_[env]; }

  // Returns a valid next step; the script chooses its rows among those of the contract.
  v1::ActRequest NextStep(Script& script) const;

  // Returns the bytes of a leaf in a step with these is_first flags.
  std::size_t LeafBytes(const LeafSpec& leaf, const std::string& is_first) const;

  // Records a step that the learner has accepted. Requires that its rows are in the contract's table.
  void Advance(const v1::Observations& step);

 private:
  std::string MakeLeaf(const LeafSpec& leaf, std::size_t size) const;

  Hello hello_;
  std::uint64_t next_step_ = 0;
  std::vector<bool> due_;  // [B]
};

}  // namespace kubebeast::fuzz
