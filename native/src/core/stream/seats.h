// Groups of a stream's environments that make unrolls together.
#pragma once

#include <cstdint>
#include <optional>
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
  std::optional<RolloutAssembler> assembler;
};

// Returns the seats of a stream: a single one of all environments, or one of each agent if they take turns, or if all
// agents but one of each environment are opponents. The place of the learning agent changes from environment to
// environment and with the number of the stream.
inline std::vector<Seat> MakeSeats(const Hello& hello, bool has_opponents, std::int64_t number) {
  if (!has_opponents && !hello.takes_turns) return {{.envs = {.first = 0, .count = hello.num_envs}}};
  std::vector<Seat> seats;
  seats.reserve(hello.num_envs);
  for (std::uint32_t env = 0; env < hello.num_envs; ++env) {
    const std::uint32_t agent = env % hello.num_agents;
    const auto learning = (env / hello.num_agents + static_cast<std::uint64_t>(number)) % hello.num_agents;
    seats.push_back({.envs = {.first = env, .count = 1}, .is_opponent = has_opponents && agent != learning});
  }
  return seats;
}

// Sets `acting` to the seats that need actions after these rows, at least one: an agent with a seat of its own needs none
// while it waits or is absent.
inline void FindActing(std::vector<Seat>& seats, const ObservationRows& rows, std::vector<Seat*>& acting) {
  acting.clear();
  for (Seat& seat : seats) {
    const std::uint32_t env = seat.envs.first;
    const bool waits = !rows.waiting.empty() && rows.waiting[env] != 0;
    const bool is_absent = rows.is_first[env] != 0 && rows.interrupted[env] != 0;
    if (seats.size() == 1 || !(waits || is_absent)) acting.push_back(&seat);
  }
  if (acting.empty()) acting.push_back(&seats.front());
}

// Returns the number of environments of seats that make unrolls.
inline std::size_t NumLearning(const std::vector<Seat>& seats) {
  std::size_t count = 0;
  for (const Seat& seat : seats) count += seat.is_opponent ? 0 : seat.envs.count;
  return count;
}

}  // namespace kubebeast
