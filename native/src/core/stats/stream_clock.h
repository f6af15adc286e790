// Clock of the states of a stream.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "sync/clock.h"

namespace kubebeast {

// The total time of a stream in each state. Not thread-safe.
class StreamClock {
 public:
  // In order: the handshake; work of the peer or the network; the wait for the model; a full rollout queue.
  enum class State { kStarting, kEnv, kInference, kParked };

  explicit StreamClock(Clock::time_point now) : since_(now) {}

  // Changes the state and returns the duration of the previous one.
  Clock::duration Enter(State next, Clock::time_point now) {
    const Clock::duration lasted = now - std::exchange(since_, now);
    spent_[Index(std::exchange(state_, next))] += lasted;
    return lasted;
  }

  State state() const { return state_; }

  // Returns the total time in `state` until now.
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
