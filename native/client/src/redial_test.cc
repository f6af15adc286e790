#include "redial.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "kubebeast/client.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

using std::chrono::milliseconds;

TEST(RedialTest, WaitsLongerFromFailureToFailureUpToALimit) {
  Settings settings;
  settings.first_backoff = milliseconds(100);
  settings.longest_backoff = milliseconds(400);
  Redial redial(settings);
  for (const int ceiling : {100, 200, 400, 400}) {
    const Clock::time_point before = Clock::now();
    redial.NoteEnd(absl::UnavailableError("nobody"), Clock::duration::zero());
    EXPECT_GE(redial.due() - before, milliseconds(ceiling / 2));
    EXPECT_LE(redial.due() - Clock::now(), milliseconds(ceiling));
  }
  redial.NoteEnd(absl::UnavailableError("gone"), std::chrono::seconds(5));
  EXPECT_LE(redial.due() - Clock::now(), milliseconds(100));
}

TEST(RedialTest, ALongWaitIsAShortLogWithOneHint) {
  Settings settings;
  settings.address = "learner:1";
  settings.first_backoff = settings.longest_backoff = milliseconds(1);
  Redial redial(settings);
  int num_lines = 0;
  std::string hint;
  for (int i = 0; i < 64; ++i) {
    const std::string line = redial.NoteEnd(absl::UnavailableError("Socket closed"), Clock::duration::zero());
    num_lines += line.empty() ? 0 : 1;
    if (line.find("does not let this program in") != std::string::npos) hint = line;
  }
  EXPECT_EQ(num_lines, 8);  // 1, 2, 4, ..., 64, and the hint
  EXPECT_NE(hint.find("tls.authorities"), std::string::npos);
}

TEST(RedialTest, HintsAtWhatTlsLacks) {
  EXPECT_EQ(HintFor({}, "connection refused"), "");
  for (const char* reason : {"CERTIFICATE_VERIFY_FAILED", "SSL routines::certificate verify failed"}) {
    EXPECT_NE(HintFor({}, reason).find("authority"), absl::string_view::npos);
  }
  EXPECT_NE(HintFor({.authorities = "ca.pem"}, "Broken pipe").find("tls.certificate"), absl::string_view::npos);
  for (const char* reason : {"WRONG_VERSION_NUMBER", "SSL routines::wrong version number"}) {
    EXPECT_NE(HintFor({.authorities = "ca.pem"}, reason).find("no TLS"), absl::string_view::npos);
  }
  EXPECT_NE(HintFor({}, "Peer name a is not in peer certificate").find("tls.server_name"), absl::string_view::npos);
}

TEST(RedialTest, AfterABrokenConnectionANewStreamBeginsWithFirstRows) {
  std::atomic<int> num_streams = 0;
  std::promise<std::vector<v1::Observations>> second;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    if (num_streams++ == 0) {
      stream.Answer(2);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "about to be replaced");
    }
    second.set_value(stream.Answer(2));
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_TRUE(env.Observe(kNumbers, 1).Wait(kPatience).ok());
  const Reply lost = env.Observe(kNumbers, 1).Wait(kPatience);
  EXPECT_TRUE(lost.lost());
  EXPECT_EQ(lost.status.message, "UNAVAILABLE: about to be replaced");
  EXPECT_TRUE(env.Observe(kNumbers, 1).status().lost());
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_TRUE(env.Observe(kNumbers, 1).Wait(kPatience).ok());
  const auto steps = second.get_future().get();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].step(), 0U);
  EXPECT_EQ(steps[0].is_first(), std::string("\1", 1));
}

TEST(RedialTest, AStartWaitsForALearnerThatComesLater) {
  const auto path = std::filesystem::temp_directory_path() / ("late-" + std::to_string(getpid()));
  const std::string address = "unix:" + path.string();
  Stream stream(SmallOptions(address));
  const PendingReply reply = stream.environment(0).Start(kNumbers);
  const Status status = stream.WaitUntilConnected(milliseconds(50));
  EXPECT_TRUE(status.pending());
  EXPECT_NE(status.message.find("UNAVAILABLE"), std::string::npos);
  const FakeLearner learner(
      [&](FakeStream& end) {
        end.Welcome();
        end.AnswerAll();
        return grpc::Status::OK;
      },
      address);
  EXPECT_TRUE(reply.Wait(kPatience).ok());
}

TEST(RedialTest, ALearnerWithoutAWelcomeIsGivenUp) {
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) {
    if (num_streams++ > 0) stream.Welcome();
    while (stream.Read().has_value()) {
    }
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.welcome_timeout = milliseconds(200);
  Stream stream(options);
  EXPECT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_GE(num_streams, 2);
}

TEST(RedialTest, TheTokenOfTheFileTravelsWithEveryCall) {
  std::promise<std::string> sent;
  const FakeLearner learner([&](FakeStream& stream) {
    const auto& metadata = stream.context().client_metadata();
    const auto found = metadata.find("authorization");
    sent.set_value(found == metadata.end() ? "" : std::string(found->second.data(), found->second.size()));
    stream.Welcome();
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  const auto path = std::filesystem::temp_directory_path() / ("token-" + std::to_string(getpid()));
  std::filesystem::remove(path);
  Options options = SmallOptions(learner.address());
  options.token_file = path.string();
  Stream stream(options);
  const Status missing = stream.WaitUntilConnected(milliseconds(20));
  EXPECT_TRUE(missing.pending());
  EXPECT_NE(missing.message.find("token"), std::string::npos);
  std::ofstream(path) << "secret\nformer\n";
  EXPECT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_EQ(sent.get_future().get(), "Bearer secret");
  std::filesystem::remove(path);
}

TEST(RedialTest, TheLogTellsOfConnections) {
  std::vector<std::string> lines;
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    if (num_streams++ == 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "soon");
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.log = [&](std::string_view line) { lines.emplace_back(line); };
  Stream stream(options);
  EXPECT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  Environment env = stream.environment(0);
  Reply reply = env.Start(kNumbers).Wait(kPatience);
  while (reply.lost()) reply = env.Start(kNumbers).Wait(kPatience);
  EXPECT_TRUE(reply.ok());
  EXPECT_EQ(lines, (std::vector<std::string>{"joined run run",
                                             "lost the learner at " + learner.address() + ": UNAVAILABLE: soon",
                                             "joined run run"}));
}

TEST(RedialTest, AnEndWithoutAByeIsALostStreamAlsoWhenItsStatusIsOk) {
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    if (num_streams++ == 0) {
      stream.Answer(1);
    } else {
      stream.AnswerAll();
    }
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_TRUE(env.Observe(kNumbers, 0).Wait(kPatience).lost());
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
}

}  // namespace
}  // namespace kubebeast::client
