// Tests of every rule of the contract that StreamCodec enforces, and of the text of each error.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "testing/wire_test_util.h"

namespace kubebeast {
namespace {

TEST(WireCodecRejectionTest, RejectsAMessageOverTheLimitBeforeReadingIt) {
  StreamCodec codec = TestCodec(Compression::kNone, {.max_message_bytes = 100});
  const auto request = codec.Decode(nullptr, 101);
  EXPECT_EQ(request.status().message(), "message: 101 bytes, at most 100");
}

struct StepRejection {
  std::string name;
  std::function<void(v1::ActRequest&)> change;  // changes step 1, in which environment 1 ends
  std::string message;
};

template <typename Change>
StepRejection Reject(std::string name, Change change, std::string message) {
  return {std::move(name), [change](v1::ActRequest& request) { change(*request.mutable_observations()); },
          std::move(message)};
}

class RejectedStepTest : public testing::TestWithParam<StepRejection> {};

TEST_P(RejectedStepTest, NamesTheFieldAndTheValue) {
  for (const int slice_size : {1, -1}) {
    StreamCodec codec = TestCodec(Compression::kNone, {.num_info = 2});
    DecodeRows(codec, FirstStep());
    v1::ActRequest message = StepInWhichEnv1Ends();
    GetParam().change(message);
    const auto request = Decode(codec, message, slice_size);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(request.status().message(), GetParam().message)) << request.status();
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

INSTANTIATE_TEST_SUITE_P(
    All, RejectedStepTest,
    testing::Values(
        Reject(
            "Empty", [](auto& m) { m.Clear(); }, "observations.step: 0, expected 1"),
        Reject(
            "WrongStep", [](auto& m) { m.set_step(2); }, "observations.step: 2, expected 1"),
        Reject(
            "OmittedStep", [](auto& m) { m.clear_step(); }, "observations.step: 0, expected 1"),
        Reject(
            "ShortLeaf", [](auto& m) { m.mutable_leaves(0)->pop_back(); },
            "observations.leaves[0] (\"image\" uint8 [4, 5] stack 4): 59 bytes, expected 60"),
        Reject(
            "LongLeaf", [](auto& m) { *m.mutable_leaves(1) += 'x'; },
            "observations.leaves[1] (\"speed\" float32 [2]): 25 bytes, expected 24"),
        Reject(
            "MissingLeaf", [](auto& m) { m.mutable_leaves()->RemoveLast(); }, "observations.leaves: 1, expected 2"),
        Reject(
            "ExtraLeaf", [](auto& m) { m.add_leaves("x"); }, "observations.leaves: more than the expected 2"),
        Reject(
            "NanInALeaf", [](auto& m) { *m.mutable_leaves(1) = Floats({0, 0, 0, kNan, 0, 0}); },
            "observations.leaves[1] (\"speed\" float32 [2]): row 1 holds nan, which is not finite"),
        Reject(
            "InfInALeaf", [](auto& m) { *m.mutable_leaves(1) = Floats({0, 0, 0, 0, -kInf, kNan}); },
            "row 2 holds -inf, which is not finite"),
        Reject(
            "ShortRewards", [](auto& m) { m.mutable_rewards()->pop_back(); }, "rewards: 11 bytes, expected 12"),
        Reject(
            "NoRewards", [](auto& m) { m.clear_rewards(); }, "observations.rewards: missing"),
        Reject(
            "NanReward", [](auto& m) { m.set_rewards(Floats({0, kNan, 0})); }, "rewards[1]: nan is not finite"),
        Reject(
            "InfReward", [](auto& m) { m.set_rewards(Floats({0, 0, -kInf})); }, "rewards[2]: -inf is not finite"),
        Reject(
            "NoTerminated", [](auto& m) { m.clear_terminated(); }, "observations.terminated: missing"),
        Reject(
            "LongTerminated", [](auto& m) { *m.mutable_terminated() += '\0'; }, "terminated: 4 bytes, expected 3"),
        Reject(
            "BadTerminated", [](auto& m) { (*m.mutable_terminated())[2] = 7; }, "terminated[2]: 7, expected 0 or 1"),
        Reject(
            "NoTruncated", [](auto& m) { m.clear_truncated(); }, "observations.truncated: missing"),
        Reject(
            "BadTruncated", [](auto& m) { (*m.mutable_truncated())[0] = '\xFF'; }, "truncated[0]: 255, expected"),
        Reject(
            "NoIsFirst", [](auto& m) { m.clear_is_first(); }, "observations.is_first: missing"),
        Reject(
            "UnexpectedIsFirst", [](auto& m) { (*m.mutable_is_first())[1] = 1; },
            "is_first[1]: 1, but the row does not follow a final one"),
        Reject(
            "EpisodeOfNoEnv", [](auto& m) { m.mutable_episodes(0)->set_env(3); }, "env: 3, expected 0 to 2"),
        Reject(
            "NanReturn", [](auto& m) { m.mutable_episodes(0)->set_episode_return(kNan); }, "nan is not finite"),
        Reject(
            "AnotherExactReturn", [](auto& m) { m.mutable_episodes(0)->set_exact_return(-20.5); },
            "episodes.exact_return: -20.5, expected a number that rounds to -21"),
        Reject(
            "NanExactReturn", [](auto& m) { m.mutable_episodes(0)->set_exact_return(kNan); }, "exact_return: nan"),
        Reject(
            "ShortInfo", [](auto& m) { m.mutable_episodes(0)->add_info(1); },
            "episodes.info: 8 bytes, expected 2 doubles"),
        Reject(
            "InfiniteInfo",
            [](auto& m) {
              m.mutable_episodes(0)->add_info(1);
              m.mutable_episodes(0)->add_info(-kInf);
            },
            "episodes.info[1]: -inf, expected a finite number"),
        StepRejection{"InfoTwice",
                      [](v1::ActRequest& m) {
                        v1::Episode& episode = *m.mutable_observations()->mutable_episodes(0);
                        episode.add_info(1);
                        episode.add_info(2);
                        auto* unknown = episode.GetReflection()->MutableUnknownFields(&episode);
                        unknown->AddLengthDelimited(4, std::string(16, '\0'));
                      },
                      "episodes.info: given twice"},
        Reject(
            "TooManyEpisodes",
            [](auto& m) {
              for (int i = 0; i < 3; ++i) m.add_episodes();
            },
            "episodes: more than the 3 environments"),
        StepRejection{"NoPayload", [](v1::ActRequest& m) { m.Clear(); }, "no payload that this version knows"},
        StepRejection{"UnknownPayload",
                      [](v1::ActRequest& m) {
                        m.Clear();
                        m.GetReflection()->MutableUnknownFields(&m)->AddLengthDelimited(9, "later");
                      },
                      "no payload that this version knows"},
        StepRejection{"SecondHello", [](v1::ActRequest& m) { m.mutable_hello(); }, "a second hello"},
        StepRejection{"WrongWireType",
                      [](v1::ActRequest& m) {
                        auto* observations = m.mutable_observations();
                        observations->GetReflection()->MutableUnknownFields(observations)->AddVarint(3, 1);
                      },
                      "observations: field 3 has the wrong wire type 0"},
        StepRejection{"WrongWireTypeOfEnvTime",
                      [](v1::ActRequest& m) {
                        auto* observations = m.mutable_observations();
                        observations->GetReflection()->MutableUnknownFields(observations)->AddFixed64(9, 1);
                      },
                      "observations: field 9 has the wrong wire type 1"},
        StepRejection{"RepeatedColumn",
                      [](v1::ActRequest& m) {
                        auto* observations = m.mutable_observations();
                        observations->GetReflection()->MutableUnknownFields(observations)->AddLengthDelimited(4, "123");
                      },
                      "observations.terminated: given twice"},
        StepRejection{"LongBye", [](v1::ActRequest& m) { m.mutable_bye()->set_detail(std::string(201, 'x')); },
                      "bye.detail: 201 characters, at most 200"},
        StepRejection{"HugeBye", [](v1::ActRequest& m) { m.mutable_bye()->set_detail(std::string(5000, 'x')); },
                      "bye: 5003 bytes, at most 4096"}),
    [](const auto& info) { return info.param.name; });

TEST(WireCodecRejectionTest, AcceptsAnInterruptedRow) {
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  v1::ActRequest message = TestStep(1, {0, 0, 0});
  message.mutable_observations()->set_rewards(Floats({0.5F, 0, 0.5F}));
  message.mutable_observations()->set_truncated(std::string("\0\1\0", 3));
  message.mutable_observations()->set_interrupted(std::string("\0\1\0", 3));
  const Rows rows = DecodeRows(codec, message);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->interrupted, kOnlyEnv1);
  EXPECT_EQ(DecodeRows(codec, TestStep(2, kOnlyEnv1))->interrupted, (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST(WireCodecRejectionTest, AcceptsAbsentRowsFromStepZeroToTheFirstRowOfAnEpisode) {
  StreamCodec codec = TestCodec();
  for (std::uint64_t step = 0; step < 3; ++step) {
    v1::ActRequest message = step == 0 ? FirstStep() : TestStep(step, kOnlyEnv1);
    message.mutable_observations()->set_truncated(std::string("\0\1\0", 3));
    message.mutable_observations()->set_interrupted(std::string("\0\1\0", 3));
    const Rows rows = DecodeRows(codec, message);
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(rows->interrupted, kOnlyEnv1);
  }
  EXPECT_EQ(DecodeRows(codec, TestStep(3, kOnlyEnv1))->is_first, kOnlyEnv1);
  EXPECT_EQ(DecodeRows(codec, TestStep(4, {0, 0, 0}))->is_first, (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST(WireCodecRejectionTest, RejectsAnAbsentRowThatIsNotTruncatedOrIsRewarded) {
  v1::ActRequest message = FirstStep();
  message.mutable_observations()->set_interrupted(std::string("\1\0\0", 3));
  StreamCodec codec = TestCodec();
  EXPECT_EQ(Decode(codec, message).status().message(), "observations.interrupted[0]: 1, but the row is not truncated");
  message.mutable_observations()->set_truncated(std::string("\1\0\0", 3));
  message.mutable_observations()->set_rewards(Floats({2.5F, 0, 0}));
  EXPECT_EQ(Decode(codec, message).status().message(), "observations.rewards[0]: 2.5, expected 0 where interrupted");
}

TEST(WireCodecRejectionTest, RejectsAnInterruptedRowThatIsNotTruncatedOrIsRewarded) {
  const auto refusal = [](v1::ActRequest message, const std::string& truncated) {
    StreamCodec codec = TestCodec();
    DecodeRows(codec, FirstStep());
    DecodeRows(codec, StepInWhichEnv1Ends());
    message.mutable_observations()->set_truncated(truncated);
    message.mutable_observations()->set_interrupted(std::string("\1\0\0", 3));
    return std::string(Decode(codec, message).status().message());
  };
  const v1::ActRequest message = TestStep(2, kOnlyEnv1);
  EXPECT_EQ(refusal(message, std::string(3, '\0')), "observations.interrupted[0]: 1, but the row is not truncated");
  EXPECT_EQ(refusal(message, std::string("\1\0\0", 3)), "observations.rewards[0]: 2.5, expected 0 where interrupted");
  v1::ActRequest opening = message;
  opening.mutable_observations()->set_interrupted("\1");
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  DecodeRows(codec, StepInWhichEnv1Ends());
  EXPECT_EQ(Decode(codec, opening).status().message(), "observations.interrupted: 1 bytes, expected 3");
}

TEST(WireCodecRejectionTest, DemandsThatANumberIsFiniteAsFloat32) {
  const auto first_step = [](double value) {
    EnvSpec spec;
    spec.observation = {{.path = "speed", .dtype = DType::kFloat64, .shape = {1}, .frame_stack = 2}};
    StreamCodec codec({.num_envs = kTestEnvs, .spec = spec, .compression = {Compression::kNone}}, {});
    const std::vector<double> frames = {0, 0, 0, value, 0, 0};
    v1::ActRequest message = FirstStep();
    message.mutable_observations()->mutable_leaves()->RemoveLast();
    message.mutable_observations()->set_leaves(0, frames.data(), frames.size() * sizeof(double));
    return Decode(codec, message).status();
  };
  const double largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(first_step(-largest).ok());
  EXPECT_EQ(
      first_step(1e300).message(),
      "observations.leaves[0] (\"speed\" float64 [1] stack 2): row 1 holds 1e+300, which is not finite as float32");
  for (const double value : {largest * (1 + 0x1p-25), largest * (1 + 0x1p-24), static_cast<double>(kNan), -1e300}) {
    EXPECT_EQ(first_step(value).ok(), std::isfinite(static_cast<float>(value))) << value;
  }
}

TEST(WireCodecRejectionTest, RejectsTwoPayloadsInOneMessage) {
  StreamCodec codec = TestCodec();
  const std::string bytes = FirstStep().SerializeAsString();
  EXPECT_EQ(Decode(codec, bytes + bytes).status().message(), "message: more than one payload");
}

TEST(WireCodecRejectionTest, DemandsIsFirstInEveryRowOfStepZero) {
  StreamCodec codec = TestCodec();
  v1::ActRequest message = FirstStep();
  (*message.mutable_observations()->mutable_is_first())[2] = 0;
  EXPECT_EQ(Decode(codec, message).status().message(), "observations.is_first[2]: 0, but the row opens an episode");
}

TEST(WireCodecRejectionTest, DemandsIsFirstAfterATruncation) {
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  v1::ActRequest final_step = TestStep(1, {0, 0, 0});
  final_step.mutable_observations()->set_truncated(std::string("\0\1\0", 3));
  DecodeRows(codec, final_step);
  v1::ActRequest next = TestStep(2, kOnlyEnv1);
  next.mutable_observations()->set_is_first(std::string(3, '\0'));
  EXPECT_EQ(Decode(codec, next).status().message(), "observations.is_first[1]: 0, but the row opens an episode");
}

TEST(WireCodecRejectionTest, RejectsAFirstRowThatIsFinalOrRewarded) {
  v1::ActRequest final_row = FirstStep();
  (*final_row.mutable_observations()->mutable_truncated())[0] = 1;
  StreamCodec codec = TestCodec();
  EXPECT_EQ(Decode(codec, final_row).status().message(),
            "observations.is_first[0]: 1 together with terminated or truncated");
  v1::ActRequest rewarded = FirstStep();
  rewarded.mutable_observations()->set_rewards(Floats({0, 2, 0}));
  EXPECT_EQ(Decode(codec, rewarded).status().message(), "observations.rewards[1]: 2, expected 0 where is_first");
}

}  // namespace
}  // namespace kubebeast
