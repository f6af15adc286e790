// What a pool tells the learner's log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kubebeast {

// A finished episode as its env-server counted it: the whole game, unclipped rewards.
struct Episode {
  std::string env_server_id;
  std::string env_id;
  float episode_return = 0;
  std::uint64_t length = 0;
};

inline constexpr std::size_t kMaxEpisodes = 65536;

// StreamEvent of _core.pyi. What the peer has not told is empty.
struct StreamEvent {
  enum class Kind : std::uint8_t { kJoined, kLeft, kRefused, kDialFailed };
  Kind kind = Kind::kJoined;
  std::string env_server_id;
  std::string instance_id;
  std::string env_id;
  std::size_t num_envs = 0;
  std::string peer;
  std::string reason;
  std::string detail;
};

inline constexpr std::size_t kMaxStreamEvents = 4096;

}  // namespace kubebeast
