// Causes of the end of a stream.
#pragma once

#include "absl/strings/string_view.h"
#include "stats/stats.h"

namespace kubebeast {

struct EndCause {
  absl::string_view name;         // StreamEvent.reason of _core.pyi
  Stats::Value Stats::* counter;  // counter of accepted streams with this end

  constexpr bool operator==(const EndCause&) const = default;
};

namespace end_cause {

inline constexpr EndCause kBye{"bye", &Stats::streams_ended_bye};
inline constexpr EndCause kDisconnect{"disconnect", &Stats::streams_ended_disconnect};
inline constexpr EndCause kInvalid{"invalid", &Stats::streams_ended_invalid};
inline constexpr EndCause kTimeout{"timeout", &Stats::streams_ended_timeout};
inline constexpr EndCause kDropped{"dropped", &Stats::streams_ended_dropped};
inline constexpr EndCause kClosed{"closed", &Stats::streams_ended_closed};

// Returns true if a stream that was not accepted was refused, rather than ended by its peer or with the pool.
constexpr bool IsRefusal(const EndCause& cause) { return cause != kDisconnect && cause != kClosed && cause != kBye; }

}  // namespace end_cause
}  // namespace kubebeast
