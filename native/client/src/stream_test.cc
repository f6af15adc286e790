// Tests of a stream from the program's side, with all kinds of learners.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "kubebeast/client.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point kNow = Clock::time_point::min();

TEST(StreamTest, PlaysEpisodesAndSaysBye) {
  std::promise<std::vector<v1::Observations>> played;
  std::promise<std::optional<v1::Bye>> said;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    played.set_value(stream.Answer(4));
    said.set_value(stream.AnswerAll());
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  const Reply first = env.Start(kNumbers).Wait(kPatience);
  ASSERT_TRUE(first.ok()) << first.status.message;
  EXPECT_EQ(first.action.value<std::int64_t>(), 0);
  EXPECT_TRUE(env.Observe(kNumbers, 1).Wait(kPatience).ok());
  const Reply last = env.End(kNumbers, 2, Ending::kTruncated).Wait(kPatience);
  EXPECT_TRUE(last.ok());
  EXPECT_EQ(last.action.num_leaves(), 0U);
  EXPECT_TRUE(env.Start(kNumbers).Wait(kPatience).ok());
  EXPECT_TRUE(stream.Close(Reason::kEnvironmentFailed, "broken", kPatience).ok());

  const auto steps = played.get_future().get();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[3].step(), 3U);
  EXPECT_EQ(steps[0].leaves(0), std::string(reinterpret_cast<const char*>(kNumbers.data()), sizeof(kNumbers)));
  EXPECT_EQ(steps[2].truncated(), std::string("\1", 1));
  EXPECT_EQ(steps[2].episodes(0).episode_return(), 3);
  EXPECT_EQ(steps[3].is_first(), std::string("\1", 1));
  const auto bye = said.get_future().get();
  ASSERT_TRUE(bye.has_value());
  EXPECT_EQ(bye->reason(), v1::Bye::REASON_ENVIRONMENT_FAILED);
  EXPECT_EQ(bye->detail(), "broken");
  EXPECT_EQ(env.Observe(kNumbers, 0).status().code, Code::kClosed);
}

TEST(StreamTest, SaysWhichRunItPlaysFor) {
  std::promise<std::string> run;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    run.set_value(stream.hello().run());
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.run = "run";
  Stream stream(options);
  EXPECT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_EQ(run.get_future().get(), "run");
}

TEST(StreamTest, RefusesALearnerOfAnotherRunThatDoesNotLook) {
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome(/*minor=*/4, /*lz4=*/false, "another");
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.run = "run";
  Stream stream(options);
  const Status status = stream.WaitUntilConnected(kPatience);
  EXPECT_EQ(status.code, Code::kRefused);
  EXPECT_NE(status.message.find(R"(welcome.run_id is "another", expected "run")"), std::string::npos) << status.message;
}

TEST(StreamTest, AReplyThatIsNotThereIsPendingAndTheNextRowIsNotTaken) {
  std::promise<void> may_answer;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    const auto request = stream.Read();
    may_answer.get_future().wait();
    stream.Write(stream.Actions(0, 2));
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  Environment env = stream.environment(0);
  const PendingReply reply = env.Start(kNumbers);
  EXPECT_TRUE(reply.Poll().pending());
  EXPECT_TRUE(reply.Wait(milliseconds(1)).pending());
  const PendingReply skipped = env.Observe(kNumbers, 1);
  EXPECT_TRUE(skipped.status().pending());
  EXPECT_TRUE(skipped.Wait(kPatience).pending());
  may_answer.set_value();
  EXPECT_EQ(reply.Wait(kPatience).action.value<std::int64_t>(), 2);
  EXPECT_EQ(reply.Poll().action.value<std::int64_t>(), 2);
  EXPECT_TRUE(env.Observe(kNumbers, 1).Wait(kPatience).ok());
}

TEST(StreamTest, EnvironmentsInThreadsOfTheirOwnPlayInLockstep) {
  constexpr std::uint32_t kEnvs = 4;
  constexpr int kSteps = 200;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  for (const bool progress_thread : {false, true}) {
    Options options = SmallOptions(learner.address(), kEnvs);
    options.progress_thread = progress_thread;
    Stream stream(options);
    std::vector<std::thread> threads;
    std::atomic<int> steps = 0;
    for (std::uint32_t index = 0; index < kEnvs; ++index) {
      threads.emplace_back([&, env = stream.environment(index), index]() mutable {
        Reply reply = env.Start(kNumbers).Wait(kPatience);
        for (int step = 1; step < kSteps && reply.ok(); ++step) {
          EXPECT_EQ(reply.action.value<std::int64_t>(), index);
          reply = env.Observe(kNumbers, 1).Wait(kPatience);
          ++steps;
        }
        EXPECT_TRUE(reply.ok()) << reply.status.message;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(steps, kEnvs * (kSteps - 1));
  }
}

TEST(StreamTest, ARefusalIsForEverAndWakesWhoWaits) {
  FakeLearner learner([](FakeStream& stream) {
    stream.Read();
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "another game");
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  const Reply reply = env.Start(kNumbers).Wait(kPatience);
  EXPECT_EQ(reply.status.code, Code::kRefused);
  EXPECT_EQ(reply.status.message, "another game");
  EXPECT_EQ(env.Start(kNumbers).status().code, Code::kRefused);
  EXPECT_EQ(stream.status().code, Code::kRefused);
  EXPECT_TRUE(stream.Close().ok());
}

TEST(StreamTest, RowsThatTheLearnerDoesNotKnowAreARefusal) {
  FakeLearner learner([](FakeStream& stream) {
    stream.Welcome(3);
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  const Reply reply = stream.environment(0).Absent().Wait(kPatience);
  EXPECT_EQ(reply.status.code, Code::kRefused);
  EXPECT_NE(reply.status.message.find("1.4"), std::string::npos);
}

TEST(StreamTest, CloseWakesWhoWaits) {
  std::promise<void> is_waiting;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    stream.Read();
    is_waiting.set_value();
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address(), 2));
  Stream silent(SmallOptions("unix:/nobody-listens-here"));
  std::thread first(
      [&] { EXPECT_EQ(stream.environment(0).Start(kNumbers).Wait(kPatience).status.code, Code::kClosed); });
  std::thread second([&] { EXPECT_EQ(silent.WaitUntilConnected(kPatience).code, Code::kClosed); });
  EXPECT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_TRUE(stream.Close(Reason::kShutdown, {}, kPatience).ok());
  EXPECT_TRUE(silent.Close(Reason::kShutdown, {}, kPatience).ok());
  first.join();
  second.join();
}

TEST(StreamTest, CloseEndsAStreamThatTheLearnerDoesNot) {
  std::promise<void> over;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    while (stream.Read().has_value()) {
    }
    over.get_future().wait();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  ASSERT_TRUE(stream.WaitUntilConnected(kPatience).ok());
  EXPECT_TRUE(stream.Close(Reason::kShutdown, {}, milliseconds(20)).pending());
  over.set_value();
}

TEST(StreamTest, LargeFramesTravelCompressedWhereTheLearnerWants) {
  std::promise<std::vector<v1::Observations>> played;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome(4, true);
    played.set_value(stream.Answer(1));
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.observation = {{.dtype = DType::kUint8, .shape = {512, 512}, .frame_stack = 4}};
  Stream stream(options);
  const std::vector<std::uint8_t> frame(512 * 512);
  EXPECT_TRUE(stream.environment(0).Start(frame).Wait(kPatience).ok());
  EXPECT_LT(played.get_future().get().at(0).leaves(0).size(), frame.size() / 10);
}

TEST(StreamTest, LargeFramesTravelWithoutCompression) {
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Options options = SmallOptions(learner.address());
  options.observation = {{.dtype = DType::kUint8, .shape = {1024, 1024}, .frame_stack = 4}};
  Stream stream(options);
  const std::vector<std::uint8_t> frame(1024 * 1024);
  EXPECT_TRUE(stream.environment(0).Start(frame).Wait(kPatience).ok());
  EXPECT_TRUE(stream.environment(0).Observe(frame, 0).Wait(kPatience).ok());
}

TEST(StreamTest, ATracedStepIsAnsweredWithTheTimeOfTheEnvironment) {
  std::promise<std::uint64_t> told;
  FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    stream.Read();
    v1::ActResponse actions = stream.Actions(0);
    actions.mutable_actions()->set_traced(true);
    stream.Write(actions);
    told.set_value(stream.Answer(1).at(0).env_us());
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  EXPECT_TRUE(stream.environment(0).Start(kNumbers).Wait(kPatience).ok());
  EXPECT_TRUE(stream.environment(0).Observe(kNumbers, 0).Wait(kPatience).ok());
  EXPECT_GE(told.get_future().get(), 1U);
}

TEST(StreamTest, OptionsThatCannotBeUsedMakeEveryCallMisuse) {
  Options options = SmallOptions("unix:/none");
  options.observation[0].frame_stack = 1000;
  Stream stream(options);
  EXPECT_EQ(stream.status().code, Code::kMisuse);
  EXPECT_EQ(stream.environment(0).Start(kNumbers).status().code, Code::kMisuse);
  EXPECT_EQ(stream.WaitUntilConnected(kPatience).code, Code::kMisuse);
  EXPECT_TRUE(stream.Close().ok());
}

TEST(StreamTest, AnEnvironmentMayOutliveItsStream) {
  std::optional<Environment> env;
  {
    Stream stream(SmallOptions("unix:/nobody-listens-here"));
    env = stream.environment(0);
  }
  EXPECT_EQ(env->Start(kNumbers).Wait(kNow).status.code, Code::kClosed);
}

}  // namespace
}  // namespace kubebeast::client
