// Fair shares of turns among lanes of different weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace kubebeast {

// A stride scheduler (Waldspurger and Weihl 1995, MIT/LCS/TM-528): every turn moves its lane on by 1 / weight, and the
// lane with the least progress is next. As long as a lane takes part, its number of turns is in proportion to its
// weight, within one turn for each lane. A lane that comes back starts level with the others: it neither catches up on
// turns nor gives any back. Not thread-safe; cheap to copy.
class FairShares {
 public:
  // weights: positive, one per lane.
  explicit FairShares(std::vector<double> weights) : weights_(std::move(weights)), reached_(weights_.size()) {}

  // Returns the next lane of those that take part (one entry per lane) and uses its turn up; nullopt if none does.
  std::optional<std::size_t> Next(const std::vector<bool>& takes_part) {
    std::optional<std::size_t> next;
    for (std::size_t lane = 0; lane < weights_.size(); ++lane) {
      if (takes_part[lane] && (!next.has_value() || Reached(lane) < Reached(*next))) next = lane;
    }
    if (!next.has_value()) return std::nullopt;
    now_ = Reached(*next);
    reached_[*next] = now_ + 1.0 / weights_[*next];
    return next;
  }

  // Returns the lane's part of `turns` among the lanes that take part, to which it is added: at least as many as it can
  // have of so many turns in a row, and all of them if it is alone.
  std::size_t MostOf(std::size_t lane, std::size_t turns, const std::vector<bool>& takes_part) const {
    double total = 0;
    std::size_t others = 0;
    for (std::size_t each = 0; each < weights_.size(); ++each) {
      if (each != lane && !takes_part[each]) continue;
      total += weights_[each];
      if (each != lane) ++others;
    }
    return static_cast<std::size_t>(std::ceil(static_cast<double>(turns + others) * (weights_[lane] / total)));
  }

  std::size_t num_lanes() const { return weights_.size(); }

 private:
  double Reached(std::size_t lane) const { return std::max(reached_[lane], now_); }

  std::vector<double> weights_;
  std::vector<double> reached_;
  double now_ = 0;  // progress of the lane with the last turn, before that turn
};

}  // namespace kubebeast
