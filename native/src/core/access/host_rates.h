// Rate limits per host for events that are harmless in small numbers.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "access/token_bucket.h"
#include "sync/mutex.h"

namespace kubebeast {

// A token bucket per host, for at most kMaxHosts hosts. Thread-safe; never blocks.
class HostRates {
 public:
  static constexpr std::size_t kMaxHosts = 4096;

  HostRates(double burst, double per_second) : burst_(burst), per_second_(per_second) {}

  // Returns false beyond the rate, or if no bucket is free. Local peers (empty host) have no limit.
  [[nodiscard]] bool Take(const std::string& host, Clock::time_point now) {
    if (host.empty()) return true;
    const MutexLock lock(mutex_);
    auto entry = buckets_.find(host);
    if (entry == buckets_.end()) {
      if (buckets_.size() >= kMaxHosts)
        std::erase_if(buckets_, [now](const auto& other) { return other.second.IsFull(now); });
      if (buckets_.size() >= kMaxHosts) return false;
      entry = buckets_.emplace(host, TokenBucket(burst_, per_second_)).first;
    }
    return entry->second.Take(now);
  }

 private:
  const double burst_;
  const double per_second_;
  Mutex mutex_;
  std::unordered_map<std::string, TokenBucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
