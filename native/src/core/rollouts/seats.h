// Seats: groups of a stream's environments that make unrolls together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rollouts/rollout_assembler.h"
#include "rollouts/unroll.h"
#include "wire/handshake_codec.h"

namespace kubebeast {

// Adjacent environments of a stream that step together.
struct Seat {
  EnvRange envs;
  // True for an agent that opponents play: its rows make no unrolls. It stays one as long as the stream.
  bool is_opponent = false;
  RolloutAssembler assembler;
  std::int64_t opponent = -1;  // the one that acted last in the game in progress, as in ModelOutputs
};

// All seats of a stream: a single one of all environments, or one for each agent if they take turns, or if all agents
// but one of each environment are opponents. The place of the learning agent changes from environment to environment
// and with the number of the stream. Not thread-safe.
class Seats {
 public:
  Seats(const Hello& hello, bool has_opponents, const std::shared_ptr<const UnrollShape>& shape, std::int64_t number);

  // Returns the number of environments that make unrolls.
  static std::size_t NumLearning(const Hello& hello, bool has_opponents);

  std::vector<Seat>& all() { return seats_; }
  // Returns the seats that need actions after the newest rows, in order.
  const std::vector<Seat*>& acting() const { return acting_; }
  bool is_opponent(std::uint32_t env) const { return seats_.size() > 1 && seats_[env].is_opponent; }
  // Returns the opponents that have played the other agents of the environment of row `env` in its game, -1 for one
  // that has not acted yet; none without opponents.
  std::vector<std::int64_t> OpponentsOf(std::uint32_t env) const;

  // Finds the seats that act after these rows, at least one: an agent with a seat of its own needs no actions while it
  // waits or is absent.
  void FindActing(const ObservationRows& rows);
  // Stores the model's outputs for the acting seats, as RolloutAssembler does. core_state is of those at an unroll
  // start.
  void SetOutputs(const std::shared_ptr<const ModelOutputs>& outputs, std::size_t first_output,
                  const float* core_state);
  // Returns the actions of all environments, by leaf, zeros for those that do not act; valid until the next call.
  std::vector<const std::uint8_t*> Actions(const ModelOutputs& outputs, std::size_t first_output);

 private:
  // Forgets the opponents of environments in which these rows begin a game: no agent played before, and now one does.
  void NoteGames(const ObservationRows& rows);

  const std::shared_ptr<const UnrollShape> shape_;
  const std::uint32_t num_envs_;
  const std::uint32_t num_agents_;
  std::vector<Seat> seats_;
  std::vector<Seat*> acting_;
  std::vector<bool> is_played_;                     // for each environment with opponents: a game is in progress
  std::vector<std::vector<std::uint8_t>> actions_;  // by leaf, if there are several seats
};

}  // namespace kubebeast
