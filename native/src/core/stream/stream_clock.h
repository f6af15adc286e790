// What a stream spends its time on.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "sync/clock.h"

namespace kubebeast {

// Adds up the time in each state. Not thread-safe.
class StreamClock {
 public:
  // The handshake; the peer computes, or the network; the model is waited for; the rollout queue is full.
  enum class State { kStarting, kEnv, kInference, kParked };

  explicit StreamClock(Clock::time_point now) : since_(now) {}

  // Returns how long the state lasted that ends now.
  Clock::duration Enter(State next, Clock::time_point now) {
    const Clock::duration lasted = now - std::exchange(since_, now);
    spent_[Index(std::exchange(state_, next))] += lasted;
    return lasted;
  }

  State state() const { return state_; }

  // All the time spent in `state` until now.
  Clock::duration Spent(State state, Clock::time_point now) const {
    return spent_[Index(state)] + (state == state_ ? now - since_ : Clock::duration::zero());
  }

 private:
  static constexpr std::size_t Index(State state) { return static_cast<std::size_t>(state); }

  State state_ = State::kStarting;
  Clock::time_point since_;
  std::array<Clock::duration, 4> spent_{};
};

}  // namespace kubebeast
