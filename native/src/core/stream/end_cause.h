// Why a stream ended.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "stats/stats.h"

namespace kubebeast {

enum class EndCause : std::uint8_t { kBye, kDisconnect, kInvalid, kTimeout, kDropped, kClosed };

// As StreamEvent.reason of _core.pyi names it.
absl::string_view NameOf(EndCause cause);

// Where accepted streams that ended so are counted.
Stats::Value& CounterOf(EndCause cause, Stats& stats);

}  // namespace kubebeast
