#include "outgoing.h"

#include <gtest/gtest.h>
#include <lz4.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "kubebeast_protos/v1/actor_pool.pb.h"

namespace kubebeast::client {
namespace {

v1::ActRequest Parse(const grpc::Slice& slice) {
  v1::ActRequest request;
  EXPECT_TRUE(request.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  return request;
}

Options ScreenOptions() {
  return {.address = "unix:/none",
          .env_server_id = "host",
          .instance_id = "1",
          .env_id = "Screen-v0",
          .env_config = R"({"preset":"none"})",
          .run = "screens",
          .num_envs = 2,
          .observation = {{.path = "screen", .dtype = DType::kUint8, .shape = {32, 32}, .frame_stack = 3},
                          {.path = "mask", .dtype = DType::kBool, .shape = {4}, .is_action_mask = true}},
          .action = {{.path = "move", .dtype = DType::kInt64, .num_categories = 4},
                     {.path = "force", .dtype = DType::kFloat32, .shape = {2}, .bounded = true}}};
}

TEST(OutgoingTest, HelloSaysAllThatTheOptionsSay) {
  const auto settings = CheckOptions(ScreenOptions());
  ASSERT_TRUE(settings.ok()) << settings.status();
  const v1::ActRequest request = Parse(EncodeHello(*settings));
  const v1::Hello& hello = request.hello();
  EXPECT_EQ(hello.protocol_version(), 1U);
  EXPECT_EQ(hello.protocol_minor(), kProtocolMinor);
  EXPECT_EQ(hello.run(), "screens");
  EXPECT_EQ(hello.env_server_id(), "host");
  EXPECT_EQ(hello.instance_id(), "1");
  EXPECT_EQ(hello.env_id(), "Screen-v0");
  EXPECT_EQ(hello.env_config(), R"({"preset":"none"})");
  EXPECT_EQ(hello.num_envs(), 2U);
  ASSERT_EQ(hello.observation_size(), 2);
  EXPECT_EQ(hello.observation(0).path(), "screen");
  EXPECT_EQ(hello.observation(0).dtype(), v1::DTYPE_UINT8);
  EXPECT_EQ(hello.observation(0).shape_size(), 2);
  EXPECT_EQ(hello.observation(0).frame_stack(), 3U);
  EXPECT_EQ(hello.observation(1).role(), v1::ROLE_ACTION_MASK);
  ASSERT_EQ(hello.action_size(), 2);
  EXPECT_EQ(hello.action(0).num_categories(), 4);
  EXPECT_TRUE(hello.action(1).bounded());
  ASSERT_EQ(hello.offered_compression_size(), 2);
  EXPECT_EQ(hello.offered_compression(0), v1::COMPRESSION_LZ4);
  EXPECT_EQ(hello.offered_compression(1), v1::COMPRESSION_NONE);
}

TEST(OutgoingTest, OptionsThatCannotBeUsedAreNamed) {
  const auto error = [](auto change) {
    Options options = ScreenOptions();
    change(options);
    return std::string(CheckOptions(options).status().message());
  };
  EXPECT_EQ(error([](Options&) {}), "");
  EXPECT_NE(error([](Options& options) { options.address = ""; }).find("address"), std::string::npos);
  EXPECT_NE(error([](Options& options) { options.num_envs = 0; }).find("num_envs"), std::string::npos);
  EXPECT_NE(error([](Options& options) { options.tls.key = "key.pem"; }).find("tls.key"), std::string::npos);
  EXPECT_NE(error([](Options& options) { options.env_id = "\n"; }).find("env_id"), std::string::npos);
  EXPECT_NE(error([](Options& options) { options.action.clear(); }).find("action"), std::string::npos);
  EXPECT_NE(error([](Options& options) { options.longest_backoff = {}; }).find("backoff"), std::string::npos);
}

TEST(OutgoingTest, AByeIsCutOffAfterAsManyCharactersAsItMayHave) {
  std::string detail;
  for (int i = 0; i < 300; ++i) detail += "ä";
  const v1::Bye bye = Parse(EncodeBye(3, detail)).bye();
  EXPECT_EQ(bye.reason(), v1::Bye::REASON_ENVIRONMENT_FAILED);
  EXPECT_EQ(bye.detail(), detail.substr(0, 400));
}

class ObservationsTest : public testing::TestWithParam<Compression> {
 protected:
  std::string Plain(const std::string& leaf, std::size_t size) const {
    if (GetParam() == Compression::kNone) return leaf;
    std::string plain(size, '\0');
    EXPECT_EQ(LZ4_decompress_safe(leaf.data(), plain.data(), static_cast<int>(leaf.size()), static_cast<int>(size)),
              static_cast<int>(size));
    return plain;
  }
};

INSTANTIATE_TEST_SUITE_P(Compressions, ObservationsTest, testing::Values(Compression::kNone, Compression::kLz4));

TEST_P(ObservationsTest, AFirstRowHasAWholeStackAndOthersTheNewestFrame) {
  const std::vector<kubebeast::LeafSpec> leaves = {{.dtype = kubebeast::DType::kUint8, .shape = {2}, .frame_stack = 3}};
  Lockstep lockstep(leaves, 2, true);
  ObservationsEncoder encoder(leaves, {GetParam()});
  const auto post = [&](std::uint32_t env, Row row, std::array<std::uint8_t, 2> frame, float reward) {
    const std::array<Frame, 1> frames{Frame(frame)};
    ASSERT_TRUE(lockstep.Post(env, row, frames, reward).ok());
  };
  const auto step = [&] {
    lockstep.MarkSent();
    lockstep.MarkAnswered();
  };
  post(0, Row::kFirst, {1, 2}, 0);
  post(1, Row::kFirst, {3, 4}, 0);
  const v1::Observations first = Parse(encoder.Encode(0, lockstep.rows(), 0)).observations();
  EXPECT_EQ(Plain(first.leaves(0), 12), std::string("\1\2\1\2\1\2\3\4\3\4\3\4", 12));
  EXPECT_EQ(first.is_first(), std::string("\1\1", 2));
  EXPECT_EQ(first.interrupted(), "");
  step();
  post(0, Row::kInner, {5, 6}, 0.5F);
  post(1, Row::kTerminated, {7, 8}, -1);
  const v1::Observations second = Parse(encoder.Encode(1, lockstep.rows(), 77)).observations();
  EXPECT_EQ(second.step(), 1U);
  EXPECT_EQ(Plain(second.leaves(0), 4), std::string("\5\6\7\10", 4));
  EXPECT_EQ(second.terminated(), std::string("\0\1", 2));
  EXPECT_EQ(second.env_us(), 77U);
  const std::array<float, 2> rewards{0.5F, -1};
  EXPECT_EQ(second.rewards(), std::string(reinterpret_cast<const char*>(rewards.data()), sizeof(rewards)));
  ASSERT_EQ(second.episodes_size(), 1);
  EXPECT_EQ(second.episodes(0).env(), 1U);
  EXPECT_EQ(second.episodes(0).episode_return(), -1);
  EXPECT_EQ(second.episodes(0).length(), 1U);
  step();
  post(0, Row::kInterrupted, {0, 0}, 0);
  post(1, Row::kFirst, {9, 9}, 0);
  const v1::Observations third = Parse(encoder.Encode(2, lockstep.rows(), 0)).observations();
  EXPECT_EQ(Plain(third.leaves(0), 8), std::string("\0\0\11\11\11\11\11\11", 8));
  EXPECT_EQ(third.interrupted(), std::string("\1\0", 2));
}

class EpisodeTest : public testing::Test {
 protected:
  // Returns the only episode of a step, as a learner of this minor version and with these keys receives it.
  static v1::Episode Sent(std::uint64_t minor, const std::vector<std::string>& keys, const Episode& episode) {
    const std::vector<kubebeast::LeafSpec> leaves = {{.dtype = kubebeast::DType::kUint8, .shape = {1}}};
    StepRows rows{.frames = {{0}}, .rewards = {0}, .terminated = {1}, .truncated = {0}, .is_first = {0}};
    rows.interrupted = {0};
    rows.episodes = {episode};
    ObservationsEncoder encoder(leaves, {Compression::kNone}, minor, keys);
    return Parse(encoder.Encode(0, rows, 0)).observations().episodes(0);
  }
};

TEST_F(EpisodeTest, HasTheNumbersThatTheLearnerLogs) {
  const Episode episode{.episode_return = 2, .length = 3, .info = {{"success", 1}, {"unwanted", 9}}};
  const v1::Episode sent = Sent(6, {"depth", "success"}, episode);
  ASSERT_EQ(sent.info_size(), 2);
  EXPECT_TRUE(std::isnan(sent.info(0)));
  EXPECT_EQ(sent.info(1), 1);
  EXPECT_FALSE(sent.has_exact_return());
  EXPECT_EQ(Sent(6, {"depth"}, episode).info_size(), 0);
  EXPECT_EQ(Sent(6, {}, episode).info_size(), 0);
  EXPECT_EQ(Sent(5, {"success"}, episode).info_size(), 0) << "an older learner";
}

TEST_F(EpisodeTest, HasTheReturnThatAFloatCannotHold) {
  const v1::Episode exact = Sent(6, {}, {.episode_return = 16'777'217});
  EXPECT_EQ(exact.exact_return(), 16'777'217);
  EXPECT_EQ(exact.episode_return(), 16'777'216);
  const v1::Episode large = Sent(6, {}, {.episode_return = -1e300});
  EXPECT_EQ(large.exact_return(), -1e300);
  EXPECT_EQ(large.episode_return(), -std::numeric_limits<float>::max());
  EXPECT_FALSE(Sent(5, {}, {.episode_return = 16'777'217}).has_exact_return());
}

}  // namespace
}  // namespace kubebeast::client
