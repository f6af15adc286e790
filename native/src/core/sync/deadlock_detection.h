// abseil's search for deadlocks, which Debian builds into its locks.
#pragma once

#include "absl/synchronization/mutex.h"

namespace kubebeast {

// Debian builds abseil without NDEBUG: every lock that gRPC takes would be looked up in a graph of all locks. For the
// whole process, as far as it shares this abseil.
inline void SkipDeadlockDetection() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace kubebeast
