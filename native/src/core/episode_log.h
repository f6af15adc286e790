// Finished episodes on their way to the learner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kubebeast {

// A finished episode as its env-server counted it: the whole game, unclipped rewards.
struct Episode {
  std::string env_server_id;
  std::string env_id;
  float episode_return = 0;
  std::uint64_t length = 0;
};

// Keeps the newest episodes until they are taken. Thread-safe.
class EpisodeLog {
 public:
  static constexpr std::size_t kMaxEpisodes = 65536;

  void Add(Episode episode) {
    const std::lock_guard lock(mutex_);
    if (episodes_.size() == kMaxEpisodes) episodes_.pop_front();
    episodes_.push_back(std::move(episode));
  }

  // Those since the last call, oldest first.
  std::deque<Episode> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(episodes_, {});
  }

 private:
  std::mutex mutex_;
  std::deque<Episode> episodes_;
};

}  // namespace kubebeast
