// Tests of the options of episodes, such as their levels, from the program's side.
#include <gtest/gtest.h>

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
  stream.Add(*answer.mutable_actions(), 0, options);
  stream.Write(answer);
}

TEST(OptionsTest, TheProgramReadsTheOptionsOfEachEpisode) {
  FakeLearner learner([&](FakeStream& stream) {
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
  FakeLearner learner([&](FakeStream& stream) {
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
  FakeLearner learner([&](FakeStream& stream) {
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

}  // namespace
}  // namespace kubebeast::client
