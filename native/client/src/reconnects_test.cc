// Test that a thousand connections leave nothing behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "kubebeast/client.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

std::ptrdiff_t CountEntries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// Open files and threads of this process, including those of its fake learner.
struct Held {
  std::ptrdiff_t files = CountEntries("/proc/self/fd");
  std::ptrdiff_t threads = CountEntries("/proc/self/task");
};

TEST(ReconnectsTest, AThousandLeaveNoFileAndNoThread) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "no /proc";
  constexpr int kWarm = 50;
  constexpr int kReconnects = 1000;
  const FakeLearner learner([](FakeStream& stream) {
    stream.Welcome();
    stream.Answer(2);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "again");
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  const auto reconnect = [&](int count) {
    for (int num_lost = 0; num_lost < count;) {
      const Reply reply = env.Start(kNumbers).Wait(kPatience);
      ASSERT_TRUE(reply.ok() || reply.lost()) << reply.status.message;
      const Reply next = reply.ok() ? env.Observe(kNumbers, 0).Wait(kPatience) : reply;
      const Reply last = next.ok() ? env.Observe(kNumbers, 0).Wait(kPatience) : next;
      ASSERT_TRUE(last.lost()) << last.status.message;
      ++num_lost;
    }
  };
  reconnect(kWarm);
  const Held before;
  reconnect(kReconnects);
  const Held after;
  // Tolerance for files and threads that come and go in gRPC and in the learner of this process.
  constexpr int kSpare = 16;
  EXPECT_LE(after.files, before.files + kSpare);
  EXPECT_LE(after.threads, before.threads + kSpare);
}

}  // namespace
}  // namespace kubebeast::client
