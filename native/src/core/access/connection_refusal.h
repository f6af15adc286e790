// Why a connection never brought a stream.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "stats/stats.h"

namespace kubebeast {

enum class ConnectionRefusal : std::uint8_t {
  kBlocked,    // its host has too many offences
  kClosed,     // by the peer, which had not sent a byte: so do probes of the port
  kSilent,     // sent nothing in time
  kPlaintext,  // HTTP/2 without TLS, where TLS is on
  kTls,        // TLS where it is off
  kGarbage,    // neither
  kNoCall,     // was handed to gRPC, and opened no call in time
};

// The reason of its StreamEvent, and the label of its metric.
absl::string_view NameOf(ConnectionRefusal refusal);

// What it may be, for people.
absl::string_view ExplanationOf(ConnectionRefusal refusal);

// Where connections that were refused so are counted.
Stats::Value& CounterOf(ConnectionRefusal refusal, Stats& stats);

}  // namespace kubebeast
