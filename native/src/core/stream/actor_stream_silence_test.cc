// Tests of peers that fall silent with the connection open, and of their room in the rollout queue.
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "stream/actor_stream.h"
#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

class ActorStreamSilenceTest : public OpenPoolTest {
 protected:
  // Starts a pool with room for the two environments of one stream, and no timeout for silent streams.
  void SetUp() override {
    StartOpenPool([](PoolOptions& options) {
      options.max_queued_rollouts = 2;
      options.step_timeout = std::chrono::hours(1);
    });
  }

  // Stops a stream in the middle of an unroll while it holds all of the room.
  void Freeze(TestActor& actor) {
    ASSERT_TRUE(actor.Join());
    Walk(actor, 2);
  }

  // Takes the room as soon as the frozen stream has lost it, and keeps it: the model's answer is outstanding.
  void TakeRoom(TestActor& actor) {
    ASSERT_TRUE(actor.Join());
    actor.Send(actor.StepMessage(0));
    ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 2));
  }
};

TEST_F(ActorStreamSilenceTest, RoomOfAFrozenStreamGoesToTheNext) {
  TestActor frozen(pool_->address(), 2);
  TestActor next(pool_->address(), 2, 2);
  Freeze(frozen);
  TakeRoom(next);
  EXPECT_EQ(Stat(*pool_, "rollouts_running"), 2);
  EXPECT_TRUE(AnswerNext(*pool_).ok());
  EXPECT_TRUE(next.ReadActions());
}

TEST_F(ActorStreamSilenceTest, ThawedStreamWaitsForRoomAndLosesNothing) {
  TestActor frozen(pool_->address(), 2);
  TestActor next(pool_->address(), 2, 2);
  Freeze(frozen);
  TakeRoom(next);
  frozen.Send(frozen.StepMessage(2));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 2) << "its step is not answered while the other has the room";
  next.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 0));
  EXPECT_TRUE(AnswerNext(*pool_).ok());
  EXPECT_TRUE(frozen.ReadActions());
  Walk(frozen, 2);
  frozen.Send(frozen.StepMessage(5));
  const auto batch = pool_->NextRollouts(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(CheckColumn(*batch, 0, 5).last, 5);
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(ActorStreamSilenceTest, LastWordsOfAStreamWithoutRoomAreDeliveredWhenThereIsRoom) {
  TestActor frozen(pool_->address(), 2);
  TestActor next(pool_->address(), 2, 2);
  Freeze(frozen);
  TakeRoom(next);
  frozen.Send(frozen.StepMessage(2));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  frozen.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(frozen.Status().ok());
  EXPECT_EQ(Stat(*pool_, "rollouts_queued"), 0) << "the queue holds no more than its capacity";
  EXPECT_EQ(Stat(*pool_, "steps_in_flight"), Stat(*pool_, "steps_sampled"));
  next.Vanish();
  const auto batch = pool_->NextRollouts(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(CheckColumn(*batch, 0, 5).last, 2) << "with the step that waited";
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(ActorStreamSilenceTest, LastWordsOfAStreamWithoutRoomAreCountedWhenThePoolCloses) {
  TestActor frozen(pool_->address(), 2);
  TestActor next(pool_->address(), 2, 2);
  Freeze(frozen);
  TakeRoom(next);
  frozen.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_ended_disconnect", 1));
  pool_->Close(std::chrono::milliseconds(1000));
  EXPECT_EQ(Stat(*pool_, "steps_dropped_close"), Stat(*pool_, "steps_sampled"));
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST(ActorPoolSilenceTest, TheOthersGoOnWhenHalfOfTheFleetFreezes) {
  constexpr std::uint32_t kFrozen = 8;
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.max_queued_rollouts = 4;
    options.step_timeout = std::chrono::hours(1);
  });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  std::vector<std::unique_ptr<TestActor>> frozen;
  std::vector<std::future<void>> live;
  const TestLearner learner(*pool);
  for (std::uint32_t env = 0; env < kFrozen; ++env) {
    frozen.push_back(std::make_unique<TestActor>(pool->address(), 1, env));
    ASSERT_TRUE(frozen.back()->Join());
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(frozen.back()->Step()) << env << " finds the room of the others";
  }
  for (std::uint32_t env = kFrozen; env < 2 * kFrozen; ++env) {
    live.push_back(std::async(std::launch::async, [&pool, env] {
      TestActor actor(pool->address(), 1, env);
      ASSERT_TRUE(actor.Join());
      while (actor.Step()) {
      }
    }));
  }
  for (int i = 0; i < 50; ++i) {
    const auto batch = pool->NextRollouts(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_GE(CheckColumn(*batch, 0, 5).env, kFrozen);
    EXPECT_LT(Stat(*pool, "rollouts_queued") + Stat(*pool, "rollouts_running"), 4 + 1);
  }
  pool->Close(std::chrono::milliseconds(1000));
  for (auto& actor : live) actor.get();
}

}  // namespace
}  // namespace kubebeast
