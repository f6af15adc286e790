// Token bucket: a rate limit that allows bursts.
#pragma once

#include <algorithm>
#include <chrono>

#include "sync/clock.h"

namespace kubebeast {

// A bucket that holds at most `burst` tokens and gains `per_second`. Charges may leave a debt of at most `debt` tokens.
// Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(double burst, double per_second, double debt = 0)
      : burst_(burst), per_second_(per_second), debt_(debt), level_(burst) {}

  // Takes `cost` tokens and returns true if there are as many; otherwise takes none.
  [[nodiscard]] bool Take(Clock::time_point now, double cost = 1) {
    Fill(now);
    if (level_ < cost) return false;
    level_ -= cost;
    return true;
  }

  // Takes `cost` tokens even if there are fewer, as far as the debt allows; it must be paid before the next Take.
  void Charge(Clock::time_point now, double cost) {
    Fill(now);
    level_ = std::max(level_ - cost, -debt_);
  }

  bool IsFull(Clock::time_point now) const { return LevelAt(now) >= burst_; }

 private:
  double LevelAt(Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - filled_at_).count();
    return std::min(burst_, level_ + per_second_ * std::max(seconds, 0.0));
  }

  void Fill(Clock::time_point now) {
    level_ = LevelAt(now);
    filled_at_ = std::max(filled_at_, now);
  }

  double burst_;
  double per_second_;
  double debt_;
  double level_;
  Clock::time_point filled_at_;
};

}  // namespace kubebeast
