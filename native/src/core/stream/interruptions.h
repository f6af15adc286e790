// Count of the environments of a stream that failed in the middle of an episode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire/observation_rows.h"

namespace kubebeast {

// A counter of failures. Not thread-safe.
class Interruptions {
 public:
  explicit Interruptions(std::uint32_t num_envs) : interrupted_at_(num_envs) {}

  // Returns the number of environments that go missing with the stream's next step. Absent rows are no failures.
  std::size_t Count(const ObservationRows& observation) {
    std::size_t count = 0;
    for (std::uint32_t env = 0; env < observation.num_envs(); ++env) {
      if (observation.interrupted[env] == 0 || observation.is_first[env] != 0) continue;
      // Rows of an environment that stays away alternate: one that opens an episode, one that is interrupted.
      const bool still_away = interrupted_at_[env] != 0 && observation.step - interrupted_at_[env] == 2;
      count += still_away ? 0 : 1;
      interrupted_at_[env] = observation.step;
    }
    return count;
  }

 private:
  std::vector<std::uint64_t> interrupted_at_;  // step of the last interrupted row, or 0
};

}  // namespace kubebeast
