// Why a connection never brought a stream.
#pragma once

#include "absl/strings/string_view.h"
#include "stats/stats.h"

namespace kubebeast {

struct ConnectionRefusal {
  absl::string_view name;         // the reason of its StreamEvent, and the label of its metric
  absl::string_view explanation;  // what it may be, for people
  Stats::Value Stats::* counter;

  bool operator==(const ConnectionRefusal&) const = default;
};

namespace connection_refusal {

inline constexpr ConnectionRefusal kBlocked{
    "blocked", "streams of this host broke the contract too often (max_offences)", &Stats::connections_blocked};
inline constexpr ConnectionRefusal kClosed{"closed", "it was closed before it sent a byte, as probes of a port are",
                                           &Stats::connections_closed};
inline constexpr ConnectionRefusal kSilent{"silent", "it sent nothing", &Stats::connections_silent};
inline constexpr ConnectionRefusal kPlaintext{"plaintext", "it came without TLS, which the learner demands",
                                              &Stats::connections_plaintext};
inline constexpr ConnectionRefusal kTls{"tls", "it came with TLS, which the learner has switched off",
                                        &Stats::connections_tls};
inline constexpr ConnectionRefusal kGarbage{"garbage", "what it sent is not gRPC", &Stats::connections_garbage};
// Was handed to gRPC, and opened no call in time.
inline constexpr ConnectionRefusal kNoCall{
    "no_call",
    "it opened no stream: with TLS its certificate may be missing or not accepted here, or the learner's not there; "
    "else it is no gRPC client",
    &Stats::connections_no_call};

}  // namespace connection_refusal
}  // namespace kubebeast
