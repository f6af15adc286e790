#include <numeric>
#include <string>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

Histogram::Snapshot HistogramOf(const ActorPool& pool, std::string_view name) {
  for (const auto& [key, taken] : pool.GetHistograms()) {
    if (key == name) return taken;
  }
  ADD_FAILURE() << "no such histogram: " << name;
  return {};
}

std::int64_t CountOf(const ActorPool& pool, std::string_view name) {
  const std::vector<std::int64_t> counts = HistogramOf(pool, name).counts;
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

class ActorPoolWatchTest : public OpenPoolTest {};

TEST_F(ActorPoolWatchTest, StreamTellsWhoItIsAndWhatItDoes) {
  StartOpenPool();
  EXPECT_TRUE(pool_->GetStreams().empty());
  TestActor actor(pool_->address(), 2, 4);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 3);

  const std::vector<StreamInfo> streams = pool_->GetStreams();
  ASSERT_EQ(streams.size(), 1);
  EXPECT_EQ(streams[0].env_server_id, "pod-4");
  EXPECT_EQ(streams[0].env_id, "Counter-v0");
  EXPECT_EQ(streams[0].slots.size(), 2);
  EXPECT_EQ(streams[0].state, StreamClock::State::kEnv);
  EXPECT_EQ(streams[0].num_steps, Stat(*pool_, "steps_sampled"));
  EXPECT_GT(streams[0].num_steps, 0);
  EXPECT_GT(streams[0].env_s, 0);
  EXPECT_GT(streams[0].action_s, 0);
  EXPECT_EQ(streams[0].parked_s, 0);
  EXPECT_GE(streams[0].connected_s, streams[0].env_s + streams[0].action_s);

  actor.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(actor.Finish().ok());
  EXPECT_TRUE(pool_->GetStreams().empty());
}

TEST_F(ActorPoolWatchTest, EveryStepIsMeasuredOnce) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 3);
  EXPECT_EQ(CountOf(*pool_, "inference_queue_wait"), 3);
  EXPECT_EQ(CountOf(*pool_, "inference_gather"), 3);
  EXPECT_EQ(CountOf(*pool_, "inference_model"), 3);
  EXPECT_EQ(CountOf(*pool_, "inference_reply"), 3);
  EXPECT_EQ(CountOf(*pool_, "stream_action"), 3);
  EXPECT_EQ(CountOf(*pool_, "stream_env"), 2) << "the first row answers no actions";
  EXPECT_EQ(HistogramOf(*pool_, "inference_batch_rows").sum, 6.0);
}

TEST_F(ActorPoolWatchTest, UnrollsAreMeasuredWhenTheLearnerTakesThem) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 3);
  actor.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(actor.Finish().ok());
  EXPECT_EQ(CountOf(*pool_, "rollout_queue_wait"), 0);
  ASSERT_TRUE(pool_->NextRollouts(kPatience).ok());
  EXPECT_EQ(CountOf(*pool_, "rollout_queue_wait"), 2);
  EXPECT_EQ(Stat(*pool_, "rollouts_delivered"), 2);
  EXPECT_EQ(Stat(*pool_, "rollout_padded_steps"), 2 * (5 - 2)) << "two steps in unrolls of five";
}

}  // namespace
}  // namespace kubebeast
