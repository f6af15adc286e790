// Events and state of a pool for monitoring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stats/stream_clock.h"

namespace kubebeast {

// A finished episode as the env-server counted it: the whole game, unclipped rewards.
struct Episode {
  std::string env_server_id;
  std::string env_id;
  double episode_return = 0;
  std::uint64_t length = 0;
  std::vector<double> info;             // for each key in PoolOptions::log_info, NaN without a number; or empty
  std::string instance_id;              // of the stream
  std::uint64_t step = 0;               // of the stream, at which the episode ended
  std::string options;                  // with which it began; empty without any
  std::vector<std::int64_t> opponents;  // of the other agents, -1 for one that had no turn; empty if all learn
};

inline constexpr std::size_t kMaxEpisodes = 65536;

// StreamEvent of _core.pyi. Fields that the peer has not sent are empty.
struct StreamEvent {
  enum class Kind : std::uint8_t { kJoined, kLeft, kRefused, kDialFailed, kConnectionRefused, kAcceptFailed };
  Kind kind = Kind::kJoined;
  std::string env_server_id;
  std::string instance_id;
  std::string env_id;
  std::size_t num_envs = 0;
  std::string peer;
  std::string reason;
  std::string detail;
  std::string env_config;            // only in kJoined
  std::uint32_t protocol_minor = 0;  // that of the peer
};

inline constexpr std::size_t kMaxStreamEvents = 4096;

// StreamInfo of _core.pyi: a snapshot of an accepted stream.
struct StreamInfo {
  std::string env_server_id;
  std::string instance_id;
  std::string env_id;
  std::string peer;
  std::vector<std::int32_t> slots;
  StreamClock::State state = StreamClock::State::kStarting;
  std::size_t num_steps = 0;
  std::size_t num_episodes = 0;
  double connected_s = 0;
  double env_s = 0;
  double action_s = 0;
  double parked_s = 0;
};

}  // namespace kubebeast
