#include "access/connection_refusal.h"

#include <array>
#include <cstddef>

namespace kubebeast {
namespace {

struct Entry {
  absl::string_view name;
  absl::string_view explanation;
  Stats::Value Stats::* counter;
};

// In the order of ConnectionRefusal.
constexpr std::array<Entry, 7> kEntries{{
    {"blocked", "streams of this host broke the contract too often (max_offences)", &Stats::connections_blocked},
    {"closed", "it was closed before it sent a byte, as probes of a port are", &Stats::connections_closed},
    {"silent", "it sent nothing", &Stats::connections_silent},
    {"plaintext", "it came without TLS, which the learner demands", &Stats::connections_plaintext},
    {"tls", "it came with TLS, which the learner has switched off", &Stats::connections_tls},
    {"garbage", "what it sent is not gRPC", &Stats::connections_garbage},
    {"no_call",
     "it opened no stream: with TLS its certificate may be missing or not accepted here, or the learner's not there; "
     "else it is no gRPC client",
     &Stats::connections_no_call},
}};

const Entry& EntryOf(ConnectionRefusal refusal) { return kEntries[static_cast<std::size_t>(refusal)]; }

}  // namespace

absl::string_view NameOf(ConnectionRefusal refusal) { return EntryOf(refusal).name; }

absl::string_view ExplanationOf(ConnectionRefusal refusal) { return EntryOf(refusal).explanation; }

Stats::Value& CounterOf(ConnectionRefusal refusal, Stats& stats) { return stats.*EntryOf(refusal).counter; }

}  // namespace kubebeast
