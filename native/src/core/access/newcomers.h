// Connections that gRPC has got and that have not opened a call yet.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "sync/mutex.h"

namespace kubebeast {

// gRPC does not say how a connection ends: one that fails in its handshake is known by the call that never comes. Peers
// are "ipv4:10.0.0.7:4431" or "ipv6:[::1]:4431". Bounded; thread-safe; never blocks.
class Newcomers {
 public:
  // Beyond so many, further ones are not watched.
  static constexpr std::size_t kMaxConnections = 4096;

  explicit Newcomers(std::chrono::milliseconds patience) : patience_(patience) {}

  // To be called before the connection can open a call.
  void Add(const std::string& peer, Clock::time_point now);
  // A call of any method; peer: also as gRPC writes it.
  void OnCall(const std::string& peer);
  // Those that have not called for longer than `patience`; once.
  std::vector<std::string> TakeLate(Clock::time_point now);

 private:
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  std::unordered_map<std::string, Clock::time_point> late_at_ ABSL_GUARDED_BY(mutex_);  // by peer
};

}  // namespace kubebeast
