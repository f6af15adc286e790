#include "stream/repetitions.h"

#include <utility>

namespace kubebeast {

std::size_t Repetitions::Count(const std::string& what, Clock::time_point now) {
  const MutexLock lock(mutex_);
  auto entry = told_.find(what);
  if (entry == told_.end()) {
    if (told_.size() >= kMaxTold) {
      std::erase_if(told_, [now](const auto& told) { return told.second.at + kTellEvery <= now; });
    }
    if (told_.size() >= kMaxTold) return 0;
    told_.emplace(what, Told{.at = now});
    return 1;
  }
  Told& told = entry->second;
  ++told.since;
  if (now < told.at + kTellEvery) return 0;
  told.at = now;
  return std::exchange(told.since, 0);
}

}  // namespace kubebeast
