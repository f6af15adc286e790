#include "wire/handshake_codec.h"

#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/match.h"
#include "testing/wire_test_util.h"

namespace kubebeast {
namespace {

v1::ActRequest TestHello() {
  v1::ActRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_env_server_id("env-server-0");
  hello.set_instance_id("1f0c");
  hello.set_env_id("PongNoFrameskip-v4");
  hello.set_num_envs(32);
  hello.set_env_config(R"({"kwargs":{},"preset":"atari-v4"})");
  v1::LeafSpec& image = *hello.add_observation();
  image.set_path("image");
  image.set_dtype(v1::DTYPE_UINT8);
  image.add_shape(84);
  image.add_shape(84);
  image.set_frame_stack(4);
  v1::LeafSpec& speed = *hello.add_observation();
  speed.set_path("speed");
  speed.set_dtype(v1::DTYPE_FLOAT32);
  v1::LeafSpec& action = *hello.add_action();
  action.set_dtype(v1::DTYPE_INT64);
  action.set_num_categories(6);
  hello.add_offered_compression(v1::COMPRESSION_LZ4);
  return request;
}

absl::StatusOr<Hello> Decode(const v1::ActRequest& message, int slice_size = -1, const WireLimits& limits = {}) {
  const std::string bytes = message.SerializeAsString();
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  return DecodeHello(&input, bytes.size(), limits);
}

TEST(HandshakeCodecTest, DecodesAHelloOfTheStockStubs) {
  for (const int slice_size : {1, 3, 7, -1}) {
    const auto hello = Decode(TestHello(), slice_size);
    ASSERT_TRUE(hello.ok()) << hello.status();
    EXPECT_EQ(hello->env_server_id, "env-server-0");
    EXPECT_EQ(hello->instance_id, "1f0c");
    EXPECT_EQ(hello->num_envs, 32U);
    EXPECT_EQ(hello->spec.env_id, "PongNoFrameskip-v4");
    EXPECT_EQ(hello->spec.env_config, R"({"kwargs":{},"preset":"atari-v4"})");
    const LeafSpec image = {.path = "image", .dtype = DType::kUint8, .shape = {84, 84}, .frame_stack = 4};
    const LeafSpec speed = {.path = "speed", .dtype = DType::kFloat32, .shape = {}, .frame_stack = 1};
    EXPECT_EQ(hello->spec.observation, (std::vector<LeafSpec>{image, speed}));
    EXPECT_EQ(hello->spec.action, (std::vector<LeafSpec>{{.dtype = DType::kInt64, .num_categories = 6}}));
  }
}

TEST(HandshakeCodecTest, EnvServerOfNoRunServesAny) { EXPECT_TRUE(CheckRun(*Decode(TestHello()), "pong-1").ok()); }

TEST(HandshakeCodecTest, EnvServerOfAnotherRunIsRefusedWithBothNames) {
  v1::ActRequest message = TestHello();
  message.mutable_hello()->set_run("pong-1");
  EXPECT_TRUE(CheckRun(*Decode(message), "pong-1").ok());
  EXPECT_EQ(CheckRun(*Decode(message), "pong\n2"),
            absl::FailedPreconditionError(
                R"(hello.run: the env-server serves the run "pong-1", the learner trains "pong\n2")"));
}

TEST(HandshakeCodecTest, TakesMissingAndUnknownOffersAsNone) {
  v1::ActRequest message = TestHello();
  EXPECT_EQ(Decode(message)->compression, (std::vector{Compression::kLz4, Compression::kNone}));
  message.mutable_hello()->set_offered_compression(0, static_cast<v1::Compression>(9));
  EXPECT_EQ(Decode(message)->compression, (std::vector{Compression::kNone, Compression::kNone}));
}

TEST(HandshakeCodecTest, EncodesAWelcomeThatTheStockParserReads) {
  const auto options = std::make_shared<const std::string>(R"({"rooms":3})");
  v1::ActResponse response;
  ASSERT_TRUE(response.ParseFromString(EncodeWelcome("pong-1", {Compression::kLz4, Compression::kNone},
                                                     {"success", "achievements/wood"}, {{2, options}})));
  EXPECT_EQ(response.welcome().run_id(), "pong-1");
  EXPECT_EQ(response.welcome().protocol_version(), kProtocolVersion);
  EXPECT_EQ(response.welcome().protocol_minor(), kProtocolMinor);
  ASSERT_EQ(response.welcome().compression_size(), 2);
  EXPECT_EQ(response.welcome().compression(0), v1::COMPRESSION_LZ4);
  EXPECT_EQ(response.welcome().compression(1), v1::COMPRESSION_NONE);
  ASSERT_EQ(response.welcome().log_info_size(), 2);
  EXPECT_EQ(response.welcome().log_info(1), "achievements/wood");
  ASSERT_EQ(response.welcome().episode_options_size(), 1);
  EXPECT_EQ(response.welcome().episode_options(0).env(), 2U);
  EXPECT_EQ(response.welcome().episode_options(0).options(), *options);
}

TEST(HandshakeCodecTest, RefusesAnotherMajorVersion) {
  v1::ActRequest message = TestHello();
  message.mutable_hello()->set_protocol_version(2);
  const absl::Status status = Decode(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "hello.protocol_version: 2, the learner speaks 1");
}

TEST(HandshakeCodecTest, RefusesAnOversizedMessageBeforeReadingIt) {
  EXPECT_EQ(DecodeHello(nullptr, (256U << 10U) + 1, {}).status().message(), "message: 262145 bytes, at most 262144");
  EXPECT_EQ(DecodeHello(nullptr, 101, {.max_message_bytes = 100}).status().message(),
            "message: 101 bytes, at most 100");
}

TEST(HandshakeCodecTest, RefusesBytesThatAreNoMessage) {
  const std::string bytes = "\x0A\xFF\xFF\xFF\xFF\x7F";
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  EXPECT_EQ(DecodeHello(&input, bytes.size(), {}).status().message(), "hello: truncated or malformed");
}

struct Rejection {
  std::string name;
  std::function<void(v1::Hello&)> change;
  std::string message;
};

class RejectedHelloTest : public testing::TestWithParam<Rejection> {};

TEST_P(RejectedHelloTest, NamesTheFieldAndTheValue) {
  v1::ActRequest message = TestHello();
  GetParam().change(*message.mutable_hello());
  const absl::Status status = Decode(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), GetParam().message)) << status;
}

INSTANTIATE_TEST_SUITE_P(
    All, RejectedHelloTest,
    testing::Values(
        Rejection{"NoId", [](auto& h) { h.clear_env_server_id(); }, "hello.env_server_id: 0 characters, expected 1 to"},
        Rejection{"LongId", [](auto& h) { h.set_instance_id(std::string(254, 'x')); }, "instance_id: 254 characters"},
        Rejection{"ControlCharacter", [](auto& h) { h.set_env_server_id("a\nb"); }, "not printable ASCII"},
        Rejection{"BadEnvId", [](auto& h) { h.set_env_id("a\tb"); }, "hello.env_id: holds a character"},
        Rejection{"LongEnvConfig", [](auto& h) { h.set_env_config(std::string(8193, ' ')); },
                  "hello.env_config: 8193 characters, expected 0 to 8192"},
        Rejection{"LongRun", [](auto& h) { h.set_run(std::string(254, 'r')); },
                  "hello.run: 254 bytes, expected at most 253"},
        Rejection{"BadEnvConfig", [](auto& h) { h.set_env_config("{\"a\":\n1}"); }, "hello.env_config: holds a char"},
        Rejection{"ForeignEnvConfig", [](auto& h) { h.set_env_config("{\"a\":\"\xC3\xA4\"}"); },
                  "hello.env_config: holds a character that is not printable ASCII"},
        Rejection{"NoEnvs", [](auto& h) { h.set_num_envs(0); }, "hello.num_envs: 0, expected 1 to 1024"},
        Rejection{"TooManyEnvs", [](auto& h) { h.set_num_envs(1025); }, "hello.num_envs: 1025, expected 1 to 1024"},
        Rejection{"NoObservation", [](auto& h) { h.clear_observation(); }, "hello.observation has 0 leaves"},
        Rejection{"NoAction", [](auto& h) { h.clear_action(); }, "hello.action has 0 leaves"},
        Rejection{"UnknownDType", [](auto& h) { h.mutable_observation(0)->set_dtype(static_cast<v1::DType>(300)); },
                  "hello.observation leaf 0 (\"image\" invalid [84, 84] stack 4): unknown dtype"},
        Rejection{"HugeRow", [](auto& h) { h.mutable_observation(0)->set_shape(0, 1 << 20); }, "a row is larger than"},
        Rejection{"HugeStep",
                  [](auto& h) {
                    h.mutable_observation(0)->set_shape(0, 5000);
                    h.mutable_observation(1)->add_shape(200'000);
                  },
                  "hello.num_envs: 32 rows of 2480008 bytes are more than 67108864 bytes a message"},
        Rejection{"TooManyOffers", [](auto& h) { h.mutable_offered_compression()->Resize(3, v1::COMPRESSION_LZ4); },
                  "hello.offered_compression: 3 entries for 2 leaves"}),
    [](const auto& info) { return info.param.name; });

TEST(HandshakeCodecTest, AcceptsEveryMinorVersion) {
  for (const std::uint32_t minor : {0U, 1U, 99U}) {
    v1::ActRequest message = TestHello();
    message.mutable_hello()->set_protocol_minor(minor);
    const absl::StatusOr<Hello> hello = Decode(message);
    ASSERT_TRUE(hello.ok()) << minor;
    EXPECT_EQ(hello->protocol_minor, minor);
  }
}

TEST(HandshakeCodecTest, KeepsAnEnvConfigOfAnyTextAndNone) {
  v1::ActRequest message = TestHello();
  for (const std::string& text : {std::string(8192, 'x'), std::string("no JSON"), std::string()}) {
    message.mutable_hello()->set_env_config(text);
    const absl::StatusOr<Hello> hello = Decode(message);
    ASSERT_TRUE(hello.ok()) << hello.status();
    EXPECT_EQ(hello->spec.env_config, text);
  }
}

TEST(HandshakeCodecTest, EndCarriesAStatus) {
  v1::ActResponse response;
  ASSERT_TRUE(response.ParseFromString(EncodeEnd(absl::FailedPreconditionError("other shape"))));
  EXPECT_EQ(response.end().code(), 9U) << "FAILED_PRECONDITION";
  EXPECT_EQ(response.end().detail(), "other shape");
}

TEST(HandshakeCodecTest, RefusesAnotherFirstMessage) {
  EXPECT_EQ(Decode(FirstStep()).status().message(), "message: the first one must be a hello");
}

}  // namespace
}  // namespace kubebeast
