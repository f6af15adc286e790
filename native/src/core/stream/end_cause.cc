#include "stream/end_cause.h"

#include <array>
#include <cstddef>

namespace kubebeast {
namespace {

struct Entry {
  absl::string_view name;
  Stats::Value Stats::* counter;
};

// In the order of EndCause.
constexpr std::array<Entry, 6> kEntries{{{"bye", &Stats::streams_ended_bye},
                                         {"disconnect", &Stats::streams_ended_disconnect},
                                         {"invalid", &Stats::streams_ended_invalid},
                                         {"timeout", &Stats::streams_ended_timeout},
                                         {"dropped", &Stats::streams_ended_dropped},
                                         {"closed", &Stats::streams_ended_closed}}};

const Entry& EntryOf(EndCause cause) { return kEntries[static_cast<std::size_t>(cause)]; }

}  // namespace

absl::string_view NameOf(EndCause cause) { return EntryOf(cause).name; }

Stats::Value& CounterOf(EndCause cause, Stats& stats) { return stats.*EntryOf(cause).counter; }

}  // namespace kubebeast
