#include "incoming.h"

#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "kubebeast/client.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"

namespace kubebeast::client {
namespace {

class IncomingTest : public testing::Test {
 protected:
  absl::StatusOr<Response> Decode(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer buffer(&slice, 1);
    return DecodeResponse(&buffer, &actions_);
  }
  absl::StatusOr<Response> Decode(const v1::ActResponse& response) { return Decode(response.SerializeAsString()); }
  std::string Error(const v1::ActResponse& response) { return std::string(Decode(response).status().message()); }

  static v1::ActResponse Valid() {
    const std::array<std::int64_t, 2> choices{3, 1};
    const std::array<float, 4> forces{1, 2, 3, 4};
    v1::ActResponse response;
    response.mutable_actions()->set_step(7);
    response.mutable_actions()->add_leaves(choices.data(), sizeof(choices));
    response.mutable_actions()->add_leaves(forces.data(), sizeof(forces));
    return response;
  }

  ActionMemory actions_{{{.path = "move", .dtype = kubebeast::DType::kInt64, .num_categories = 4},
                         {.path = "force", .dtype = kubebeast::DType::kFloat32, .shape = {2}}},
                        2};
};

TEST_F(IncomingTest, EachEnvironmentHasItsPartOfEveryLeaf) {
  v1::ActResponse response = Valid();
  response.mutable_actions()->set_traced(true);
  const auto decoded = Decode(response);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<Actions>(*decoded).step, 7U);
  EXPECT_TRUE(std::get<Actions>(*decoded).traced);
  const Action second(actions_.of(1));
  EXPECT_EQ(second.value<std::int64_t>(0), 1);
  EXPECT_EQ(second.values<float>(1)[1], 4);
}

TEST_F(IncomingTest, ReadsAWelcomeAndSkipsWhatItDoesNotKnow) {
  v1::ActResponse response;
  v1::Welcome& welcome = *response.mutable_welcome();
  welcome.set_run_id("run");
  welcome.set_protocol_version(1);
  welcome.set_protocol_minor(9);
  welcome.add_compression(v1::COMPRESSION_LZ4);
  welcome.add_compression(v1::COMPRESSION_NONE);
  welcome.add_log_info("success");
  std::string bytes = response.SerializeAsString();
  bytes += std::string("\xa2\x06\x03zzz", 6);  // field 100
  const auto decoded = Decode(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& read = std::get<Welcome>(*decoded);
  EXPECT_EQ(read.run_id, "run");
  EXPECT_EQ(read.protocol_minor, 9U);
  EXPECT_EQ(read.compression, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(read.log_info, (std::vector<std::string>{"success"}));
}

TEST_F(IncomingTest, RefusesActionsThatDoNotFitTheSpecs) {
  v1::ActResponse fewer = Valid();
  fewer.mutable_actions()->mutable_leaves()->RemoveLast();
  EXPECT_EQ(Error(fewer), "actions.leaves: 1 entries, expected 2");
  v1::ActResponse more = Valid();
  more.mutable_actions()->add_leaves("x");
  EXPECT_EQ(Error(more), "actions.leaves: more than 2 entries");
  v1::ActResponse short_leaf = Valid();
  short_leaf.mutable_actions()->mutable_leaves(1)->pop_back();
  EXPECT_EQ(Error(short_leaf), "actions.leaves[1]: 15 bytes, expected 16");
  v1::ActResponse category = Valid();
  (*category.mutable_actions()->mutable_leaves(0))[8] = 4;
  EXPECT_EQ(Error(category), "actions.leaves[0]: element 1 is 4, expected 0 to 3");
  v1::ActResponse infinite = Valid();
  const float number = INFINITY;
  infinite.mutable_actions()->mutable_leaves(1)->replace(4, 4, reinterpret_cast<const char*>(&number), 4);
  EXPECT_EQ(Error(infinite), "actions.leaves[1]: element 1 is inf, which is not finite as a float32");
}

void Add(v1::ActResponse& response, std::uint32_t env, const std::string& options) {
  v1::EpisodeOptions& entry = *response.mutable_actions()->add_episode_options();
  entry.set_env(env);
  entry.set_options(options);
}

TEST_F(IncomingTest, ReadsOptionsOfEpisodes) {
  v1::ActResponse response = Valid();
  Add(response, 1, R"({"rooms":3})");
  Add(response, 0, "{}");
  const auto decoded = Decode(response);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& entries = std::get<Actions>(*decoded).episode_options;
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].env, 1U);
  EXPECT_EQ(*entries[0].options, R"({"rooms":3})");
}

TEST_F(IncomingTest, RefusesOptionsThatBreakTheContract) {
  v1::ActResponse unknown = Valid();
  Add(unknown, 2, "{}");
  EXPECT_EQ(Error(unknown), "episode_options.env: 2, expected less than 2");
  v1::ActResponse twice = Valid();
  Add(twice, 1, "{}");
  Add(twice, 1, "{}");
  EXPECT_EQ(Error(twice), "episode_options.env: 1 is there twice");
  v1::ActResponse list = Valid();
  Add(list, 0, "[1]");
  EXPECT_EQ(Error(list), R"(episode_options: "[1]", expected a JSON object in printable ASCII characters)");
  v1::ActResponse long_text = Valid();
  Add(long_text, 0, "{" + std::string(4096, ' ') + "}");
  EXPECT_EQ(Error(long_text), "episode_options: 4098 characters, expected at most 4096");
  v1::ActResponse welcome;
  welcome.mutable_welcome()->add_episode_options()->set_env(7);
  EXPECT_EQ(Error(welcome), R"(episode_options: "", expected a JSON object in printable ASCII characters)");
}

TEST_F(IncomingTest, RefusesWhatIsNoMessage) {
  EXPECT_FALSE(Decode("").ok());
  EXPECT_FALSE(Decode("\xff\xff\xff").ok());
  const std::string valid = Valid().SerializeAsString();
  EXPECT_FALSE(Decode(valid + valid).ok());
  for (std::size_t size = 1; size < valid.size(); ++size) EXPECT_FALSE(Decode(valid.substr(0, size)).ok()) << size;
  v1::ActResponse end;
  end.mutable_end()->set_code(3);
  EXPECT_FALSE(Decode(end).ok());
}

}  // namespace
}  // namespace kubebeast::client
