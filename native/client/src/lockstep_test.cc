#include "lockstep.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace kubebeast::client {
namespace {

using CoreSpec = kubebeast::LeafSpec;

const std::vector<CoreSpec> kLeaves = {{.dtype = kubebeast::DType::kFloat32, .shape = {2}},
                                       {.dtype = kubebeast::DType::kBool, .shape = {1}}};
constexpr std::array<float, 2> kNumbers{1, 2};
constexpr std::array<std::uint8_t, 1> kFlag{1};

class LockstepTest : public testing::Test {
 protected:
  Code Post(std::uint32_t env, Row row, float reward = 0) {
    const std::array<Frame, 2> frames{Frame(kNumbers), Frame(kFlag)};
    return lockstep_.Post(env, row, frames, reward).code;
  }
  // Takes one step of both environments, and its answer.
  void Step(Row first, Row second, float reward = 0) {
    ASSERT_EQ(Post(0, first, reward), Code::kOk);
    ASSERT_EQ(Post(1, second, reward), Code::kOk);
    lockstep_.MarkSent();
    lockstep_.MarkAnswered();
  }

  static OptionsText Text(const std::string& text) { return std::make_shared<const std::string>(text); }
  // Gives the first rows of episodes with these options.
  void BeginWith(const std::string& first, const std::string& second) {
    lockstep_.BeginOptions({{0, Text(first)}, {1, Text(second)}});
    for (const std::uint32_t env : {0U, 1U}) {
      EXPECT_NE(lockstep_.TakeOptions(env), "");
      EXPECT_EQ(Post(env, Row::kFirst), Code::kOk);
    }
  }

  Lockstep lockstep_{kLeaves, 2, true};
};

TEST_F(LockstepTest, IsCompleteWhenEveryEnvironmentHasARow) {
  EXPECT_EQ(Post(0, Row::kFirst), Code::kOk);
  EXPECT_FALSE(lockstep_.complete());
  EXPECT_EQ(Post(1, Row::kFirst), Code::kOk);
  EXPECT_TRUE(lockstep_.complete());
  EXPECT_EQ(lockstep_.rows().is_first, (std::vector<std::uint8_t>{1, 1}));
}

TEST_F(LockstepTest, TakesNoSecondRowBeforeTheReply) {
  EXPECT_EQ(Post(0, Row::kFirst), Code::kOk);
  EXPECT_EQ(Post(0, Row::kInner), Code::kPending);
  EXPECT_EQ(Post(1, Row::kFirst), Code::kOk);
  lockstep_.MarkSent();
  EXPECT_EQ(Post(0, Row::kInner), Code::kPending);
  EXPECT_EQ(lockstep_.reply(0), Code::kPending);
  lockstep_.MarkAnswered();
  EXPECT_EQ(lockstep_.reply(0), Code::kOk);
  EXPECT_EQ(Post(0, Row::kInner), Code::kOk);
}

TEST_F(LockstepTest, AsksForAStartWhereAnEpisodeIsDueAndForNoneWhereItIsUnderWay) {
  for (const Row row : {Row::kInner, Row::kTerminated, Row::kTruncated, Row::kBoth, Row::kInterrupted}) {
    EXPECT_EQ(Post(0, row), Code::kMisuse);
  }
  Step(Row::kFirst, Row::kAbsent);
  EXPECT_EQ(Post(0, Row::kFirst), Code::kMisuse);
  EXPECT_EQ(Post(0, Row::kAbsent), Code::kMisuse);
  EXPECT_EQ(Post(1, Row::kAbsent), Code::kOk);
}

TEST_F(LockstepTest, SetsTheFlagsOfTheContractsTable) {
  Step(Row::kFirst, Row::kFirst);
  Step(Row::kBoth, Row::kInterrupted, 0);
  const StepRows& rows = lockstep_.rows();
  EXPECT_EQ(rows.terminated, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(rows.truncated, (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(rows.interrupted, (std::vector<std::uint8_t>{0, 1}));
  Step(Row::kFirst, Row::kAbsent);
  EXPECT_EQ(lockstep_.rows().is_first, (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(lockstep_.rows().truncated, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(lockstep_.minor(), 4U);
}

TEST_F(LockstepTest, ARowThatKeepsAPlaceHasZerosForItsObservation) {
  Step(Row::kFirst, Row::kFirst);
  Step(Row::kInner, Row::kInterrupted);
  const auto& frames = lockstep_.rows().frames;
  EXPECT_EQ(frames[1], (std::vector<std::uint8_t>{1, 0}));
  EXPECT_TRUE(std::all_of(frames[0].begin() + 8, frames[0].end(), [](std::uint8_t byte) { return byte == 0; }));
}

TEST_F(LockstepTest, ReportsAFinishedEpisodeWithItsReturnAndLength) {
  Step(Row::kFirst, Row::kFirst);
  Step(Row::kInner, Row::kInner, 2);
  ASSERT_EQ(Post(0, Row::kInner, 1), Code::kOk);
  ASSERT_EQ(Post(1, Row::kTerminated, 3), Code::kOk);
  const auto& episodes = lockstep_.rows().episodes;
  ASSERT_EQ(episodes.size(), 1U);
  EXPECT_EQ(episodes[0].env, 1U);
  EXPECT_EQ(episodes[0].episode_return, 5);
  EXPECT_EQ(episodes[0].length, 2U);
  lockstep_.MarkSent();
  EXPECT_TRUE(lockstep_.rows().episodes.empty());
}

TEST_F(LockstepTest, TakesNoReportWhereItCountsItself) {
  EXPECT_EQ(lockstep_.Report(0, 1, 1).code, Code::kMisuse);
  Lockstep reporting(kLeaves, 1, false);
  EXPECT_EQ(reporting.Report(0, 7, 9).code, Code::kOk);
  EXPECT_EQ(reporting.rows().episodes.at(0).length, 9U);
  EXPECT_EQ(reporting.Report(0, NAN, 9).code, Code::kMisuse);
}

TEST_F(LockstepTest, ReturnsAreNotRounded) {
  Step(Row::kFirst, Row::kFirst);
  Step(Row::kInner, Row::kInner, 16'777'216);
  ASSERT_EQ(Post(0, Row::kTerminated, 1), Code::kOk);
  ASSERT_EQ(Post(1, Row::kInner), Code::kOk);
  EXPECT_EQ(lockstep_.rows().episodes.at(0).episode_return, 16'777'217);
}

TEST_F(LockstepTest, AnEpisodeHasTheNumbersThatWereSetWithinIt) {
  EXPECT_EQ(lockstep_.SetInfo(0, "success", 1).code, Code::kMisuse) << "no episode";
  Step(Row::kFirst, Row::kFirst);
  EXPECT_EQ(lockstep_.SetInfo(0, "success", 0).code, Code::kOk);
  EXPECT_EQ(lockstep_.SetInfo(0, "success", 1).code, Code::kOk);
  EXPECT_EQ(lockstep_.SetInfo(1, "success", 5).code, Code::kOk);
  EXPECT_EQ(lockstep_.SetInfo(0, "depth", NAN).code, Code::kMisuse);
  EXPECT_EQ(lockstep_.SetInfo(2, "depth", 1).code, Code::kMisuse);
  ASSERT_EQ(Post(0, Row::kTerminated), Code::kOk);
  ASSERT_EQ(Post(1, Row::kInterrupted), Code::kOk);
  const auto& episodes = lockstep_.rows().episodes;
  ASSERT_EQ(episodes.size(), 1U);
  EXPECT_EQ(episodes[0].info, (Info{{"success", 1}}));
  EXPECT_EQ(lockstep_.SetInfo(0, "success", 1).code, Code::kMisuse) << "the episode is over";
  lockstep_.MarkSent();
  lockstep_.MarkAnswered();

  Step(Row::kFirst, Row::kFirst);
  Step(Row::kInner, Row::kTerminated);
  EXPECT_TRUE(lockstep_.rows().episodes.empty()) << "it was sent";
  ASSERT_EQ(Post(0, Row::kTerminated), Code::kOk);
  EXPECT_TRUE(lockstep_.rows().episodes.at(0).info.empty());
  lockstep_.MarkLost();
  ASSERT_EQ(Post(0, Row::kFirst), Code::kOk);
  lockstep_.MarkLost();
  EXPECT_EQ(lockstep_.SetInfo(0, "success", 1).code, Code::kOk) << "the Start is still to be sent";
}

TEST_F(LockstepTest, AReportHasTheNumbersSinceTheReportBefore) {
  Lockstep reporting(kLeaves, 1, false);
  EXPECT_EQ(reporting.SetInfo(0, "level", 3).code, Code::kOk);
  EXPECT_EQ(reporting.Report(0, 7, 9).code, Code::kOk);
  EXPECT_EQ(reporting.rows().episodes.at(0).info, (Info{{"level", 3}}));
  EXPECT_EQ(reporting.Report(0, 8, 9).code, Code::kOk);
  EXPECT_TRUE(reporting.rows().episodes.at(0).info.empty());
}

TEST_F(LockstepTest, ALostStreamEndsEpisodesUntilTheNextStart) {
  Step(Row::kFirst, Row::kFirst);
  EXPECT_EQ(Post(0, Row::kInner), Code::kOk);
  lockstep_.MarkLost();
  for (const std::uint32_t env : {0U, 1U}) {
    EXPECT_EQ(lockstep_.reply(env), Code::kLost);
    EXPECT_EQ(Post(env, Row::kInner), Code::kLost);
    EXPECT_EQ(Post(env, Row::kTerminated), Code::kLost);
  }
  EXPECT_FALSE(lockstep_.complete());
  Step(Row::kFirst, Row::kAbsent);
}

TEST_F(LockstepTest, AStartThatWasNotSentOutlivesALostStream) {
  EXPECT_EQ(Post(0, Row::kFirst), Code::kOk);
  lockstep_.MarkLost();
  EXPECT_EQ(lockstep_.reply(0), Code::kPending);
  EXPECT_EQ(Post(1, Row::kFirst), Code::kOk);
  EXPECT_TRUE(lockstep_.complete());
  lockstep_.MarkSent();
  lockstep_.MarkLost();
  EXPECT_EQ(lockstep_.reply(0), Code::kLost);
}

TEST_F(LockstepTest, StartsThatWereNotSentStayForAStreamWithTheSameOptions) {
  BeginWith("{}", "{}");
  EXPECT_EQ(lockstep_.TakeOptions(2), "");
  lockstep_.MarkLost();
  lockstep_.BeginOptions({{0, Text("{}")}, {1, Text("{}")}});
  EXPECT_EQ(lockstep_.reply(0), Code::kPending);
  EXPECT_TRUE(lockstep_.complete());
}

TEST_F(LockstepTest, StartsAreLostTogetherIfAStreamHasOtherOptionsForOneOfThem) {
  BeginWith("{}", "{}");
  lockstep_.MarkLost();
  lockstep_.BeginOptions({{0, Text("{}")}, {1, Text(R"({"n":1})")}});
  for (const std::uint32_t env : {0U, 1U}) {
    EXPECT_EQ(lockstep_.reply(env), Code::kLost);
    EXPECT_TRUE(lockstep_.is_outdated(env));
  }
  EXPECT_EQ(lockstep_.TakeOptions(1), R"({"n":1})");
  EXPECT_EQ(Post(1, Row::kFirst), Code::kOk);
  EXPECT_FALSE(lockstep_.complete());
  EXPECT_EQ(Post(0, Row::kAbsent), Code::kOk);
  EXPECT_TRUE(lockstep_.complete());
}

TEST_F(LockstepTest, AStartWithTheOptionsOfALostStreamLosesTheOthersOfItsStep) {
  lockstep_.BeginOptions({{0, Text("{}")}, {1, Text("{}")}});
  EXPECT_EQ(lockstep_.TakeOptions(1), "{}");
  lockstep_.MarkLost();
  EXPECT_EQ(lockstep_.TakeOptions(0), "");
  EXPECT_EQ(Post(0, Row::kFirst), Code::kOk);
  EXPECT_EQ(Post(1, Row::kFirst), Code::kLost);
  for (const std::uint32_t env : {0U, 1U}) {
    EXPECT_EQ(lockstep_.reply(env), Code::kLost);
    EXPECT_EQ(Post(env, Row::kFirst), Code::kOk);
  }
  EXPECT_TRUE(lockstep_.complete());
}

TEST_F(LockstepTest, OptionsThatComeAfterThoseThatWereTakenAreToBeTaken) {
  BeginWith("{}", "{}");
  EXPECT_FALSE(lockstep_.ignores_options());
  lockstep_.MarkSent();
  EXPECT_EQ(lockstep_.TakeOptions(0), "{}");
  lockstep_.MarkAnswered();
  Step(Row::kTerminated, Row::kInner);
  lockstep_.SetOptions({{0, Text("{}")}});
  EXPECT_EQ(Post(0, Row::kFirst), Code::kOk);
  EXPECT_TRUE(lockstep_.ignores_options());
}

TEST_F(LockstepTest, ALostStreamTakesNothingFromAnEpisodeThatWasOver) {
  Step(Row::kFirst, Row::kFirst);
  Step(Row::kTerminated, Row::kInner);
  lockstep_.MarkLost();
  EXPECT_EQ(lockstep_.reply(0), Code::kOk);
  EXPECT_EQ(lockstep_.reply(1), Code::kLost);
}

TEST_F(LockstepTest, RefusesWhatDoesNotFitTheSpecAndStaysAsItWas) {
  const auto post = [&](std::span<const Frame> frames, float reward = 0) {
    return lockstep_.Post(0, Row::kFirst, frames, reward).code;
  };
  const std::array<Frame, 1> one{Frame(kNumbers)};
  EXPECT_EQ(post(one), Code::kMisuse);
  const std::array<float, 3> three{};
  const std::array<Frame, 2> too_long{Frame(three), Frame(kFlag)};
  EXPECT_EQ(post(too_long), Code::kMisuse);
  const std::array<std::int32_t, 2> integers{};
  const std::array<Frame, 2> other_type{Frame(integers), Frame(kFlag)};
  EXPECT_EQ(post(other_type), Code::kMisuse);
  const std::array<float, 2> infinite{0, std::numeric_limits<float>::infinity()};
  const std::array<Frame, 2> not_finite{Frame(infinite), Frame(kFlag)};
  EXPECT_EQ(post(not_finite), Code::kMisuse);
  const std::array<std::uint8_t, 1> two{2};
  const std::array<Frame, 2> no_bool{Frame(kNumbers), Frame(two)};
  EXPECT_EQ(post(no_bool), Code::kMisuse);
  const std::array<Frame, 2> good{Frame(kNumbers), Frame(kFlag)};
  EXPECT_EQ(post(good, NAN), Code::kMisuse);
  EXPECT_EQ(lockstep_.Post(2, Row::kFirst, good, 0).code, Code::kMisuse);
  EXPECT_EQ(lockstep_.reply(0), Code::kMisuse);
  EXPECT_EQ(post(good), Code::kOk);
}

}  // namespace
}  // namespace kubebeast::client
