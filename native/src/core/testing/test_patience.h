// Bounded waits for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "sync/clock.h"

namespace kubebeast {

// A time longer than any test takes: a wait of this length has failed.
inline constexpr std::chrono::seconds kPatience{60};

// Blocks until the condition is true, for changes that no event announces.
template <typename Condition>
testing::AssertionResult Eventually(const Condition& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) return testing::AssertionFailure() << "the condition stays false";
    std::this_thread::yield();
  }
  return testing::AssertionSuccess();
}

// Returns success if the promise is kept in time; get() alone might wait for ever.
template <typename Future>
testing::AssertionResult IsKept(const Future& future) {
  if (future.wait_for(kPatience) == std::future_status::ready) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the promise is not kept";
}

}  // namespace kubebeast
