// Which peers break the rules so often that their connections are not worth what they cost.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sync/mutex.h"

namespace kubebeast {

// Remembers the offences of each host: streams that broke the contract, had no token or never said Hello. A host
// with more than `allowed` of them, of which it is forgiven one every `forgiven_every`, is blocked until that many are
// forgiven. Bounded; thread-safe; never blocks.
class Offences {
 public:
  static constexpr std::size_t kMaxHosts = 4096;

  // allowed: 0 blocks nobody.
  Offences(std::size_t allowed, std::chrono::milliseconds forgiven_every)
      : allowed_(allowed), forgiven_every_(forgiven_every) {}

  void Add(const std::string& host, Clock::time_point now);
  bool Blocks(const std::string& host, Clock::time_point now);

 private:
  void DropForgiven(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t allowed_;
  const std::chrono::milliseconds forgiven_every_;
  Mutex mutex_;
  // All of a host's, which says how many.
  std::unordered_map<std::string, Clock::time_point> forgiven_at_ ABSL_GUARDED_BY(mutex_);
};

// The host of a peer as gRPC names it, "ipv4:10.0.0.7:4431" or "ipv6:%5B::1%5D:4431"; empty for others, which are
// local.
std::string HostOfPeer(std::string_view peer);

}  // namespace kubebeast
