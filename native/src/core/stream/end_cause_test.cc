#include "stream/end_cause.h"

#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

TEST(EndCauseTest, EveryCauseHasTheCounterOfItsName) {
  for (const EndCause cause : {EndCause::kBye, EndCause::kDisconnect, EndCause::kInvalid, EndCause::kTimeout,
                               EndCause::kDropped, EndCause::kClosed}) {
    Stats stats;
    ++CounterOf(cause, stats);
    const std::string expected = "streams_ended_" + std::string(NameOf(cause));
    for (const auto& [name, value] : stats.Snapshot()) EXPECT_EQ(value, name == expected ? 1 : 0) << name;
  }
}

}  // namespace
}  // namespace kubebeast
