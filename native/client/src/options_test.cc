// Tests of the options of episodes, such as their levels, from the program's side.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "kubebeast/client.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

const std::string kLevel = R"({"n":0})";
const std::string kNextLevel = R"({"n":1})";

// Accepts the stream of one environment with options of its first episode; none if empty.
bool WelcomeWith(FakeStream& stream, const std::string& options) {
  return stream.Welcome(7, false, "run", {}, options.empty() ? std::vector<std::string>{} : std::vector{options});
}

// Answers a step with options of the next episode.
void AnswerWith(FakeStream& stream, const std::string& options) {
  const auto request = stream.Read();
  if (!request.has_value()) return;
  v1::ActResponse answer = stream.Actions(request->observations().step());
  FakeStream::Add(*answer.mutable_actions(), 0, options);
  stream.Write(answer);
}

TEST(OptionsTest, TheProgramReadsTheOptionsOfEachEpisode) {
  const FakeLearner learner([&](FakeStream& stream) {
    WelcomeWith(stream, kLevel);
    stream.Answer(1);
    AnswerWith(stream, kNextLevel);
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  EXPECT_EQ(env.NextOptions(), "") << "before the connection";
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_EQ(env.NextOptions(), kLevel);
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  ASSERT_TRUE(env.End(kNumbers, 1, Ending::kTerminated).Wait(kPatience).ok());
  EXPECT_EQ(env.NextOptions(), kNextLevel);
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
}

class IgnoredOptionsTest : public testing::TestWithParam<bool> {};

TEST_P(IgnoredOptionsTest, EndTheStreamBeforeAnEpisodeOfAnotherLevel) {
  std::promise<bool> played;
  const FakeLearner learner([&](FakeStream& stream) {
    WelcomeWith(stream, kLevel);
    played.set_value(stream.Read().has_value());
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  if (GetParam()) {
    ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  }
  const Reply reply = stream.environment(0).Start(kNumbers).Wait(kPatience);
  EXPECT_EQ(reply.status.code, Code::kRefused);
  EXPECT_NE(reply.status.message.find("call NextOptions"), std::string::npos) << reply.status.message;
  EXPECT_EQ(stream.status().code, Code::kRefused);
  EXPECT_FALSE(played.get_future().get());
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAWaitForTheConnection, IgnoredOptionsTest, testing::Bool());

TEST(OptionsTest, EachStartTakesACallOfItsOwn) {
  const FakeLearner learner([&](FakeStream& stream) {
    WelcomeWith(stream, kLevel);
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  ASSERT_TRUE(env.Absent().Wait(kPatience).ok()) << "an absent row begins no episode";
  EXPECT_EQ(env.NextOptions(), kLevel);
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  ASSERT_TRUE(env.End(kNumbers, 1, Ending::kTerminated).Wait(kPatience).ok());
  EXPECT_EQ(env.Start(kNumbers).Wait(kPatience).status.code, Code::kRefused);
}

// A learner with a stream of `kLevel` that breaks after one answer, and then one of `kNextLevel`.
grpc::Status BreakAndGoOn(FakeStream& stream, std::atomic<int>& num_streams) {
  const bool is_first = num_streams++ == 0;
  WelcomeWith(stream, is_first ? kLevel : kNextLevel);
  if (is_first) {
    stream.Answer(1);
    return {grpc::StatusCode::UNAVAILABLE, "replaced"};
  }
  stream.AnswerAll();
  return grpc::Status::OK;
}

TEST(OptionsTest, ALostStreamTakesItsOptionsAlong) {
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) { return BreakAndGoOn(stream, num_streams); });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_EQ(env.NextOptions(), kLevel);
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  ASSERT_TRUE(env.Observe(kNumbers, 0).Wait(kPatience).lost());
  EXPECT_EQ(env.NextOptions(), "");
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_EQ(env.NextOptions(), kNextLevel);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
}

TEST(OptionsTest, AStartIsLostIfTheNextStreamHasOtherOptions) {
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) { return BreakAndGoOn(stream, num_streams); });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  env.NextOptions();
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  ASSERT_TRUE(env.Observe(kNumbers, 0).Wait(kPatience).lost());
  env.NextOptions();
  const Reply reply = env.Start(kNumbers).Wait(kPatience);
  ASSERT_TRUE(reply.lost());
  EXPECT_NE(reply.status.message.find("NextOptions"), std::string::npos) << reply.status.message;
  EXPECT_TRUE(env.Observe(kNumbers, 0).Wait(kPatience).lost()) << "until the next Start";
  EXPECT_EQ(env.NextOptions(), kNextLevel);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
}

TEST(OptionsTest, AStartBeforeTheConnectionIsLostIfTheLearnerChoosesOptions) {
  std::promise<std::size_t> num_steps;
  const FakeLearner learner([&](FakeStream& stream) {
    WelcomeWith(stream, kLevel);
    num_steps.set_value(stream.Answer(1).size());
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  EXPECT_EQ(env.NextOptions(), "");
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).lost());
  EXPECT_EQ(env.NextOptions(), kLevel);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_EQ(num_steps.get_future().get(), 1U);
}

TEST(OptionsTest, ThoseThatWereReadBeforeTheReplyToTheEndAreNone) {
  const FakeLearner learner([&](FakeStream& stream) {
    WelcomeWith(stream, kLevel);
    stream.Answer(1);
    AnswerWith(stream, kNextLevel);
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  env.NextOptions();
  ASSERT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_EQ(env.NextOptions(), kLevel);
  ASSERT_TRUE(env.End(kNumbers, 1, Ending::kTerminated).Wait(kPatience).ok());
  EXPECT_EQ(env.Start(kNumbers).Wait(kPatience).status.code, Code::kRefused);
}

}  // namespace
}  // namespace kubebeast::client
