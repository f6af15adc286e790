#include "stream/end_cause.h"

#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

TEST(EndCauseTest, EveryCauseHasTheCounterOfItsName) {
  for (const EndCause& cause : {end_cause::kBye, end_cause::kDisconnect, end_cause::kInvalid, end_cause::kTimeout,
                                end_cause::kDropped, end_cause::kClosed}) {
    Stats stats;
    ++(stats.*cause.counter);
    const std::string expected = "streams_ended_" + std::string(cause.name);
    for (const auto& [name, value] : stats.Snapshot()) EXPECT_EQ(value, name == expected ? 1 : 0) << name;
  }
}

}  // namespace
}  // namespace kubebeast
