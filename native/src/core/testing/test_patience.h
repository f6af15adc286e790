// Waits of the tests: every one ends.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "sync/clock.h"

namespace kubebeast {

// Longer than any test: a wait that takes so long has failed.
inline constexpr std::chrono::seconds kPatience{60};

// Waits for something that no event tells of.
template <typename Condition>
testing::AssertionResult Eventually(const Condition& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) return testing::AssertionFailure() << "the condition stays false";
    std::this_thread::yield();
  }
  return testing::AssertionSuccess();
}

// Whether the promise is kept in time; else get() would wait for ever.
template <typename Future>
testing::AssertionResult IsKept(const Future& future) {
  if (future.wait_for(kPatience) == std::future_status::ready) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the promise is not kept";
}

}  // namespace kubebeast
