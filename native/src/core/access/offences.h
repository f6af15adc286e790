// Hosts that break the rules too often to be worth the cost of their connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sync/mutex.h"

namespace kubebeast {

// The offenses of each host: streams that broke the protocol, had no token or never sent a Hello, and connections
// without a stream or with too much traffic. One offense is forgiven every `forgiven_every`; a host with more than
// `allowed` left is blocked until enough are forgiven. Bounded; thread-safe; never blocks.
class Offences {
 public:
  static constexpr std::size_t kMaxHosts = 4096;

  // allowed: 0 blocks no host.
  Offences(std::size_t allowed, std::chrono::milliseconds forgiven_every)
      : allowed_(allowed), forgiven_every_(forgiven_every) {}

  void Add(const std::string& host, Clock::time_point now);
  // Returns true if the host has an offense that is not forgiven yet.
  bool Has(const std::string& host, Clock::time_point now);
  bool Blocks(const std::string& host, Clock::time_point now);

 private:
  void DropForgiven(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t allowed_;
  const std::chrono::milliseconds forgiven_every_;
  Mutex mutex_;
  // Time at which the last offense of each host is forgiven, from which the number left follows.
  std::unordered_map<std::string, Clock::time_point> forgiven_at_ ABSL_GUARDED_BY(mutex_);
};

// Returns the host of a peer in gRPC's notation, "ipv4:10.0.0.7:4431" or "ipv6:%5B::1%5D:4431"; empty for other peers,
// which are local.
std::string HostOfPeer(std::string_view peer);

}  // namespace kubebeast
