// Options of episodes from the learner's curriculum to env-servers, and back with the episodes.
#include <future>
#include <string>
#include <vector>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

class ActorPoolOptionsTest : public OpenPoolTest {
 protected:
  void SetUp() override {
    pool_ = StartPool([](PoolOptions& options) {
      options.expected = RolloutSpec();
      options.episode_options = true;
    });
  }
  void Open() { ASSERT_TRUE(pool_->Open(2, 2).ok()); }
  void Push(const std::vector<std::string>& texts) { ASSERT_TRUE(pool_->PushEpisodeOptions(texts).ok()); }
};

TEST_F(ActorPoolOptionsTest, EveryEpisodeHasOptionsAndComesBackWithThem) {
  Push({R"({"n":0})", R"({"n":1})", R"({"n":2})", R"({"n":3})"});
  Open();
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  EXPECT_EQ(actor.options(0), R"({"n":0})");
  EXPECT_EQ(actor.options(1), R"({"n":1})");
  Walk(actor, 3);
  EXPECT_EQ(actor.options(1), R"({"n":1})");
  Walk(actor, 1);  // the final row of environment 1 is that of step 3
  EXPECT_EQ(actor.options(1), R"({"n":2})");
  Walk(actor, 3);  // that of environment 0 is that of step 6
  EXPECT_EQ(actor.options(0), R"({"n":3})");
  const auto episodes = pool_->TakeEpisodes();
  ASSERT_EQ(episodes.size(), 2U);
  EXPECT_EQ(episodes[0].options, R"({"n":1})");
  EXPECT_EQ(episodes[1].options, R"({"n":0})");
  Walk(actor, 7);
  EXPECT_EQ(actor.options(0), R"({"n":3})") << "kept while there are no others";
  EXPECT_EQ(pool_->TakeEpisodes()[0].options, R"({"n":2})");
  EXPECT_EQ(Stat(*pool_, "options_sent"), 4);
  EXPECT_EQ(Stat(*pool_, "options_repeated"), 2);
}

TEST_F(ActorPoolOptionsTest, AnOlderEnvServerPlaysWithoutOptions) {
  Push({"{}"});
  Open();
  for (const std::uint32_t minor : {kOptionsMinor - 1, kOptionsMinor}) {
    TestActor actor(pool_->address(), 1);
    v1::ActRequest hello = actor.HelloMessage();
    hello.mutable_hello()->set_protocol_minor(minor);
    actor.Send(hello);
    const auto response = actor.Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->welcome().episode_options_size(), minor == kOptionsMinor ? 1 : 0);
    Walk(actor, 7);
    const auto episodes = pool_->TakeEpisodes();
    ASSERT_EQ(episodes.size(), 1U);
    EXPECT_EQ(episodes[0].options, minor == kOptionsMinor ? "{}" : "");
    for (const StreamEvent& event : pool_->TakeStreamEvents()) {
      if (event.kind == StreamEvent::Kind::kJoined) {
        EXPECT_EQ(event.protocol_minor, minor);
      }
    }
  }
}

TEST_F(ActorPoolOptionsTest, CloseWakesTheThreadThatWaitsForRoom) {
  Push(std::vector<std::string>(OptionsQueue::kMinPlaces, "{}"));
  EXPECT_EQ(pool_->WaitOptionsRoom(milliseconds(0)).status().code(), absl::StatusCode::kDeadlineExceeded);
  auto room = std::async(std::launch::async, [this] { return pool_->WaitOptionsRoom(kPatience).status().code(); });
  pool_->Close(milliseconds(0));
  EXPECT_EQ(room.get(), absl::StatusCode::kCancelled);
}

TEST_F(ActorPoolOptionsTest, TextsThatNoMessageMayHoldAreRefused) {
  EXPECT_EQ(pool_->PushEpisodeOptions({"3"}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kubebeast
