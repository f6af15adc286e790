// Switch for abseil's deadlock detection, which Debian builds into its locks.
#pragma once

#include "absl/synchronization/mutex.h"

namespace kubebeast {

// Turns the detection off in the whole process, as far as it shares this abseil. Debian builds abseil without NDEBUG,
// so every lock that gRPC takes would be looked up in a graph of all locks.
inline void SkipDeadlockDetection() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace kubebeast
