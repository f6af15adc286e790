// Pools without rollouts, for other users of the streams than our learner.
#include <future>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

class ActorPoolRowsTest : public OpenPoolTest {
 protected:
  void SetUp() override {
    StartOpenPool([](PoolOptions& options) {
      options.unroll_length = 0;
      options.batch_size = 1;
      options.max_queued_rollouts = 1;
    });
  }
};

TEST_F(ActorPoolRowsTest, StreamsAreNeverHeldBack) {
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 50);
  EXPECT_EQ(Stat(*pool_, "streams_parked"), 0);
  EXPECT_EQ(Stat(*pool_, "rollouts_queued"), 0);
  EXPECT_EQ(pool_->NextRollouts(kPatience).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ActorPoolRowsTest, StepsAreDeliveredWithTheirBatch) {
  constexpr int kSteps = 30;
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, kSteps);
  int num_steps = 0;
  for (int step = 1; step < kSteps; ++step) num_steps += IsFirst(0, step) ? 0 : 1;
  EXPECT_EQ(Stat(*pool_, "steps_delivered"), num_steps);
  EXPECT_EQ(Stat(*pool_, "steps_sampled"), num_steps);
  EXPECT_EQ(Stat(*pool_, "steps_in_flight"), 0);
}

TEST_F(ActorPoolRowsTest, StepsOfAStreamThatEndsBeforeItsBatchAreNotSampled) {
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 3);
  TestActor other(pool_->address(), 1, 1);
  ASSERT_TRUE(other.Join());
  actor.Send(actor.StepMessage(3));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
  actor.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams", 1));
  Walk(other, 1);
  EXPECT_EQ(Stat(*pool_, "steps_sampled"), 2);
  EXPECT_TRUE(BooksBalance(*pool_));
}

}  // namespace
}  // namespace kubebeast
