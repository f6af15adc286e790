// The clock of every deadline and every duration.
#pragma once

#include <chrono>

namespace kubebeast {

using Clock = std::chrono::steady_clock;

}  // namespace kubebeast
