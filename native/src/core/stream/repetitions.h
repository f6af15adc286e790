// Suppression of repeated log lines: an event is reported once, and then only counted for a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "sync/mutex.h"

namespace kubebeast {

// Counters of repeated events. Bounded, however many different events there are; thread-safe; never blocks.
class Repetitions {
 public:
  static constexpr std::chrono::minutes kTellEvery{5};
  // Maximum of different events within kTellEvery; further ones are not reported.
  static constexpr std::size_t kMaxTold = 256;

  // Counts an event. Returns 0 if nothing is due; else the number of events since the last report, at least 1.
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
