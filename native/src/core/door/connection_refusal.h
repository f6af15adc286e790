// Reasons for the end of connections that bring no stream.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "stats/stats.h"

namespace kubebeast {

// Condition under which such an end is an offense of the host.
enum class Offends : std::uint8_t { kAlways, kBeyondARate, kNever };

struct ConnectionRefusal {
  absl::string_view name;         // reason of its StreamEvent, and label of its metric
  absl::string_view explanation;  // possible causes, for people
  Stats::Value Stats::* counter;
  Offends offends = Offends::kAlways;

  bool operator==(const ConnectionRefusal&) const = default;
};

namespace connection_refusal {

inline constexpr ConnectionRefusal kBlocked{
    "blocked", "connections of this host broke the rules too often (max_offences), and others came before it",
    &Stats::connections_blocked, Offends::kNever};
inline constexpr ConnectionRefusal kClosed{"closed", "it was closed before it sent a byte, as probes of a port are",
                                           &Stats::connections_closed, Offends::kNever};
inline constexpr ConnectionRefusal kCrowded{"crowded", "too many connections without a stream were open",
                                            &Stats::connections_crowded, Offends::kNever};
inline constexpr ConnectionRefusal kSilent{"silent", "it sent nothing", &Stats::connections_silent};
inline constexpr ConnectionRefusal kPlaintext{"plaintext", "it came without TLS, which the learner demands",
                                              &Stats::connections_plaintext};
inline constexpr ConnectionRefusal kTls{"tls", "it came with TLS, which the learner has switched off",
                                        &Stats::connections_tls};
inline constexpr ConnectionRefusal kGarbage{"garbage", "what it sent is not gRPC", &Stats::connections_garbage};
inline constexpr absl::string_view kNoCallExplanation =
    "it opened no stream: with TLS its certificate may be missing or not accepted here, or the learner's not there; "
    "else it is no gRPC client";
// Handed to gRPC, but no call came in time (kNoCall), or the peer closed the connection before (kLeft).
inline constexpr ConnectionRefusal kNoCall{"no_call", kNoCallExplanation, &Stats::connections_no_call};
inline constexpr ConnectionRefusal kLeft{"no_call", kNoCallExplanation, &Stats::connections_no_call,
                                         Offends::kBeyondARate};
// Sent more than its calls and messages account for.
inline constexpr ConnectionRefusal kBytes{"bytes", "it sent more bytes than a stream needs", &Stats::connections_bytes};
inline constexpr ConnectionRefusal kCalls{"calls", "it opened, or cancelled, more calls than an env-server does",
                                          &Stats::connections_calls};
inline constexpr ConnectionRefusal kCancelled{"calls", kCalls.explanation, &Stats::connections_calls, Offends::kNever};

}  // namespace connection_refusal
}  // namespace kubebeast
