// Constants of the protocol between a learner and its peers (protos/kubebeast_protos/v1/actor_pool.proto).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kubebeast {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kProtocolMinor = 8;
// From this minor version on a peer knows Actions.traced and answers with Observations.env_us.
inline constexpr std::uint32_t kTracedMinor = 2;
// From this minor version on a peer knows Welcome.log_info and answers with Episode.info.
inline constexpr std::uint32_t kInfoMinor = 6;
// From this minor version on a peer knows EpisodeOptions.
inline constexpr std::uint32_t kOptionsMinor = 7;

// Limits of a Hello and of texts of the learner, as in services/common/kubebeast_common/spec/limits.py.
inline constexpr std::size_t kMaxIdCharacters = 253;
inline constexpr std::size_t kMaxEnvConfigCharacters = 8192;
inline constexpr std::size_t kMaxRunBytes = 253;
inline constexpr std::size_t kMaxLogInfo = 32;
inline constexpr std::size_t kMaxInfoCharacters = 100;
inline constexpr std::size_t kMaxOptionsCharacters = 4096;

// Compression of a leaf, with the values of kubebeast.v1.Compression.
enum class Compression : std::uint8_t { kNone = 1, kLz4 = 2 };

// Limits on the messages that a receiver accepts.
struct WireLimits {
  std::size_t max_message_bytes = std::size_t{64} << 20U;
  std::uint32_t max_envs_per_stream = 1024;
  std::size_t num_info = 0;  // entries of Welcome.log_info, and of Episode.info unless it is empty
};

}  // namespace kubebeast
