// Clock of all deadlines and durations.
#pragma once

#include <chrono>

namespace kubebeast {

using Clock = std::chrono::steady_clock;

}  // namespace kubebeast
