// What is worth a line in the log once, and is then only counted for a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "sync/mutex.h"

namespace kubebeast {

// Bounded, however many things there are; thread-safe; never blocks.
class Repetitions {
 public:
  static constexpr std::chrono::minutes kTellEvery{5};
  // Different things within kTellEvery; further ones are not reported.
  static constexpr std::size_t kMaxTold = 256;

  // `what` has happened. 0: nothing to report now; else how often it happened since the last report, at least 1.
  std::size_t Count(const std::string& what, Clock::time_point now);

 private:
  struct Told {
    Clock::time_point at;
    std::size_t since = 0;
  };

  Mutex mutex_;
  std::unordered_map<std::string, Told> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
