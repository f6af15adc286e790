// Limits on the silence of peers, after which they count as frozen.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "sync/clock.h"

namespace kubebeast {

// Limits from the measured step times of each lane. A peer is frozen after kFactor times the mean of its lane, so a
// peer that is only slower than most of its lane is waited for. Not thread-safe.
class Patience {
 public:
  // Shortest limit: a garbage collection, a reset or a busy core is no freeze.
  static constexpr std::chrono::milliseconds kShortest{500};
  // Shortest limit if another peer of the lane is frozen: more of them may have been parked when they froze, and show
  // it one after the other.
  static constexpr std::chrono::milliseconds kShortestBeside{100};
  // Limit for a lane in which all peers are frozen, from the last sign of one of them on; then the lane loses turns.
  static constexpr std::chrono::milliseconds kWithLane{1500};
  static constexpr int kFactor = 4;

  explicit Patience(std::size_t num_lanes) : lanes_(num_lanes) {}

  // Records a step of `size` environments in lock-step. A time beyond the lane's limit counts as the limit: the end of
  // a freeze is not the length of a step, and a lane that becomes slower is followed all the same.
  void Note(std::size_t lane, std::size_t size, Clock::duration took) {
    Lane& known = lanes_[lane];
    if (known.num_steps > 0) took = std::min(took, With(lane, size));
    known.num_steps = std::min(known.num_steps + 1, kWindow);
    known.mean_s += (Seconds(took).count() / static_cast<double>(size) - known.mean_s) / known.num_steps;
  }

  // Returns the limit for a peer of `size` environments; beside_frozen: another one of the lane is frozen. A lane
  // without a step yet is as slow as the slowest other lane; Clock::duration::max() if no lane has made a step.
  Clock::duration With(std::size_t lane, std::size_t size, bool beside_frozen = false) const {
    const std::optional<double> mean_s = lanes_[lane].num_steps > 0 ? lanes_[lane].mean_s : Slowest();
    if (!mean_s.has_value()) return Clock::duration::max();
    const Seconds long_step(kFactor * static_cast<double>(size) * *mean_s);
    if (long_step >= Clock::duration::max()) return Clock::duration::max();
    return std::max<Clock::duration>(beside_frozen ? kShortestBeside : kShortest,
                                     std::chrono::duration_cast<Clock::duration>(long_step));
  }

 private:
  using Seconds = std::chrono::duration<double>;
  // Number of steps in the moving mean: a second of a small fleet.
  static constexpr int kWindow = 64;

  struct Lane {
    int num_steps = 0;  // at most kWindow
    double mean_s = 0;  // per environment
  };

  std::optional<double> Slowest() const {
    std::optional<double> slowest;
    for (const Lane& lane : lanes_) {
      if (lane.num_steps > 0) slowest = std::max(slowest.value_or(0), lane.mean_s);
    }
    return slowest;
  }

  std::vector<Lane> lanes_;
};

}  // namespace kubebeast
