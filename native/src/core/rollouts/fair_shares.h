// Whose turn it is among lanes of different weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace kubebeast {

// Stride scheduling (Waldspurger and Weihl 1995, MIT/LCS/TM-528): every turn moves its lane on by 1 / weight, and the
// lane that is least far on is next. Over any stretch in which a lane takes part throughout, its turns are its weight's
// share of all, give or take one for each lane. One that comes back is as far on as those that went on without it: it
// has neither to catch up on turns nor to give any back. Not thread-safe; cheap to copy.
class FairShares {
 public:
  // weights: positive, one a lane.
  explicit FairShares(std::vector<double> weights) : weights_(std::move(weights)), reached_(weights_.size()) {}

  // The next lane of those that take part, one entry a lane, whose turn is used up; nullopt where none does.
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

  // The lane's part of `turns` among the lanes that take part, itself in any case: at least as many as it can have of
  // so many turns in a row, and no more than those where it is alone.
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
  double now_ = 0;  // how far on the lane was that had the last turn
};

}  // namespace kubebeast
