#include "wire/wire_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "testing/wire_test_util.h"

namespace kubebeast {
namespace {

std::string Frames(const ObservationRows& rows, std::size_t leaf, std::uint32_t env, std::size_t size) {
  return {reinterpret_cast<const char*>(rows.frames(leaf, env)), size};
}

class SlicesTest : public testing::TestWithParam<int> {};

TEST_P(SlicesTest, DecodeToTheSameRowsWhateverTheirSize) {
  StreamCodec codec = TestCodec();
  const v1::ActRequest message = FirstStep();
  const Rows rows = DecodeRows(codec, message, GetParam());
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->num_envs(), kTestEnvs);
  for (std::uint32_t env = 0; env < kTestEnvs; ++env) {
    EXPECT_EQ(Frames(*rows, 0, env, 80), message.observations().leaves(0).substr(env * 80, 80));
    EXPECT_EQ(Frames(*rows, 1, env, 8), message.observations().leaves(1).substr(env * 8, 8));
  }
  EXPECT_EQ(rows->is_first, (std::vector<std::uint8_t>{1, 1, 1}));
}

TEST_P(SlicesTest, DecompressToTheSameRowsWhateverTheirSize) {
  StreamCodec codec = TestCodec(Compression::kLz4);
  v1::ActRequest message = FirstStep();
  const std::string raw = message.observations().leaves(0);
  message.mutable_observations()->set_leaves(0, Lz4(raw));
  ASSERT_LT(message.observations().leaves(0).size(), raw.size());
  const Rows rows = DecodeRows(codec, message, GetParam());
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(Frames(*rows, 0, 0, raw.size()), raw);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SlicesTest, testing::Values(1, 2, 3, 4, 5, 6, 7, 64, -1));

TEST(StreamCodecTest, DecodesEveryFieldOfAStep) {
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  const Rows rows = DecodeRows(codec, StepInWhichEnv1Ends());
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->step, 1U);
  EXPECT_EQ(rows->rewards, (std::vector<float>{1.5F, 1.5F, 1.5F}));
  EXPECT_EQ(rows->terminated, (std::vector<std::uint8_t>{0, 1, 0}));
  EXPECT_EQ(rows->truncated, (std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_EQ(rows->is_first, (std::vector<std::uint8_t>{0, 0, 0}));
  ASSERT_EQ(rows->episodes.size(), 1U);
  EXPECT_EQ(rows->episodes[0].env, 1U);
  EXPECT_EQ(rows->episodes[0].episode_return, -21.0F);
  EXPECT_EQ(rows->episodes[0].length, 1000U);
}

TEST(StreamCodecTest, ExactReturnIsTakenInsteadOfTheRoundedOne) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const auto& [rounded, exact] :
       {std::pair{16777216.0F, 16777217.0}, {kMax, 1e300}, {-kMax, -1e39}, {0.0F, 0.0}}) {
    StreamCodec codec = TestCodec();
    DecodeRows(codec, FirstStep());
    v1::ActRequest message = StepInWhichEnv1Ends();
    message.mutable_observations()->mutable_episodes(0)->set_episode_return(rounded);
    message.mutable_observations()->mutable_episodes(0)->set_exact_return(exact);
    const Rows rows = DecodeRows(codec, message);
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(rows->episodes[0].episode_return, exact);
  }
}

TEST(StreamCodecTest, FindsWholeStacksWhereIsFirstAndOneFrameElsewhere) {
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  DecodeRows(codec, StepInWhichEnv1Ends());
  const v1::ActRequest message = TestStep(2, kOnlyEnv1);
  const Rows rows = DecodeRows(codec, message);
  ASSERT_NE(rows, nullptr);
  const std::string& image = message.observations().leaves(0);
  EXPECT_EQ(Frames(*rows, 0, 0, 20), image.substr(0, 20));
  EXPECT_EQ(Frames(*rows, 0, 1, 80), image.substr(20, 80));
  EXPECT_EQ(Frames(*rows, 0, 2, 20), image.substr(100, 20));
}

TEST(StreamCodecTest, ReadsFieldsInAnyOrder) {
  v1::Observations first_half = FirstStep().observations();
  v1::Observations second_half;
  second_half.set_is_first(first_half.is_first());
  second_half.set_rewards(first_half.rewards());
  first_half.clear_is_first();
  first_half.clear_rewards();
  const std::string body = second_half.SerializeAsString() + first_half.SerializeAsString();
  ASSERT_LT(body.size(), 16384U);
  std::string bytes = "\x12";  // field 2, length-delimited
  bytes += static_cast<char>(0x80U | (body.size() & 0x7FU));
  bytes += static_cast<char>(body.size() >> 7U);
  StreamCodec codec = TestCodec();
  const auto request = Decode(codec, bytes + body);
  EXPECT_TRUE(request.ok()) << request.status();
}

TEST(StreamCodecTest, SkipsFieldsOfLaterVersions) {
  v1::ActRequest message = StepInWhichEnv1Ends();
  const auto add_unknown = [](google::protobuf::Message* target) {
    auto* fields = target->GetReflection()->MutableUnknownFields(target);
    fields->AddVarint(100, 1);
    fields->AddFixed32(101, 2);
    fields->AddFixed64(102, 3);
    fields->AddLengthDelimited(103, "later");
  };
  add_unknown(&message);
  add_unknown(message.mutable_observations());
  add_unknown(message.mutable_observations()->mutable_episodes(0));
  StreamCodec codec = TestCodec();
  DecodeRows(codec, FirstStep());
  const Rows rows = DecodeRows(codec, message, 3);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->episodes[0].length, 1000U);
}

TEST(StreamCodecTest, ReadsHowLongTheEnvironmentsComputed) {
  StreamCodec codec = TestCodec();
  EXPECT_EQ(DecodeRows(codec, FirstStep())->env_us, 0U) << "it does not say";
  v1::ActRequest message = TestStep(1, {0, 0, 0});
  message.mutable_observations()->set_env_us(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(DecodeRows(codec, message, 1)->env_us, std::numeric_limits<std::uint64_t>::max());
}

TEST(StreamCodecTest, CountsOnlyAcceptedSteps) {
  StreamCodec codec = TestCodec();
  EXPECT_EQ(codec.next_step(), 0U);
  EXPECT_FALSE(Decode(codec, TestStep(7, {1, 1, 1})).ok());
  EXPECT_EQ(codec.next_step(), 0U);
  DecodeRows(codec, FirstStep());
  EXPECT_EQ(codec.next_step(), 1U);
}

TEST(StreamCodecTest, DecodesBye) {
  v1::ActRequest message;
  message.mutable_bye()->set_reason(v1::Bye::REASON_TERMINATED);
  message.mutable_bye()->set_detail("drained\nby \xC3\xA9l\xC3\xA9ment");
  StreamCodec codec = TestCodec();
  const auto request = Decode(codec, message, 2);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(std::get<Bye>(*request).reason, Bye::Reason::kTerminated);
  EXPECT_EQ(std::get<Bye>(*request).detail, "drained by \xC3\xA9l\xC3\xA9ment");
}

TEST(StreamCodecTest, TakesAByeOfALaterVersionAsUnspecified) {
  v1::ActRequest message;
  message.mutable_bye()->set_reason(static_cast<v1::Bye::Reason>(77));
  StreamCodec codec = TestCodec();
  const auto request = Decode(codec, message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(std::get<Bye>(*request).reason, Bye::Reason::kUnspecified);
}

TEST(StreamCodecTest, EncodesActionsThatTheStockParserReads) {
  const std::vector<std::int64_t> actions = {5, 0, 3};
  const auto* data = reinterpret_cast<const std::uint8_t*>(actions.data());
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{300}, std::numeric_limits<std::uint64_t>::max()}) {
    v1::ActResponse response;
    ASSERT_TRUE(response.ParseFromString(TestCodec().EncodeActions(step, {data})));
    EXPECT_FALSE(response.actions().traced());
    EXPECT_EQ(response.actions().step(), step);
    ASSERT_EQ(response.actions().leaves_size(), 1);
    EXPECT_EQ(response.actions().leaves(0), std::string(reinterpret_cast<const char*>(data), 24));
  }
}

TEST(StreamCodecTest, EncodesOptionsOfAnyLength) {
  const std::vector<std::int64_t> actions = {5, 0, 3};
  const auto* data = reinterpret_cast<const std::uint8_t*>(actions.data());
  for (const bool traced : {false, true}) {
    const auto small = std::make_shared<const std::string>("{}");
    const auto large = std::make_shared<const std::string>("{" + std::string(4094, ' ') + "}");
    v1::ActResponse response;
    ASSERT_TRUE(response.ParseFromString(TestCodec().EncodeActions(300, {data}, traced, {{0, large}, {300, small}})));
    EXPECT_EQ(response.actions().traced(), traced);
    EXPECT_EQ(response.actions().leaves_size(), 1);
    ASSERT_EQ(response.actions().episode_options_size(), 2);
    EXPECT_EQ(response.actions().episode_options(0).env(), 0U);
    EXPECT_EQ(response.actions().episode_options(0).options(), *large);
    EXPECT_EQ(response.actions().episode_options(1).env(), 300U);
    EXPECT_EQ(response.actions().episode_options(1).options(), "{}");
  }
}

TEST(StreamCodecTest, EncodesThatAStepIsTraced) {
  const std::vector<std::int64_t> actions = {5, 0, 3};
  const auto* data = reinterpret_cast<const std::uint8_t*>(actions.data());
  v1::ActResponse response;
  ASSERT_TRUE(response.ParseFromString(TestCodec().EncodeActions(300, {data}, true)));
  EXPECT_TRUE(response.actions().traced());
  EXPECT_EQ(response.actions().step(), 300U);
  EXPECT_EQ(response.actions().leaves(0), std::string(reinterpret_cast<const char*>(data), 24));
}

}  // namespace
}  // namespace kubebeast
