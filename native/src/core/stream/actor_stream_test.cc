#include "stream/actor_stream.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;

class ActorStreamTest : public OpenPoolTest {
 protected:
  RolloutBatch NextRollouts() {
    auto batch = pool_->NextRollouts(kPatience);
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *std::move(batch);
  }
};

TEST_F(ActorStreamTest, OnlyThePeersOwnSilenceCounts) {
  StartOpenPool([](PoolOptions& options) { options.step_timeout = milliseconds(1000); });
  std::unique_ptr<TestActor> patient;
  ASSERT_TRUE(Eventually([&] {  // more than once if this machine is slow
    patient = std::make_unique<TestActor>(pool_->address(), 1);
    if (!patient->Join()) return false;
    patient->Send(patient->StepMessage(0));
    const auto is_settled = [this] { return Stat(*pool_, "rows_waiting") > 0 || Stat(*pool_, "streams") == 0; };
    return Eventually(is_settled) && Stat(*pool_, "rows_waiting") > 0;
  }));
  TestActor silent(pool_->address(), 1, 1);
  ASSERT_TRUE(silent.Join());
  EXPECT_EQ(silent.Status().error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_GE(Stat(*pool_, "streams_ended_timeout"), 1);
  EXPECT_TRUE(AnswerNext(*pool_).ok());
  EXPECT_TRUE(patient->ReadActions()) << "it waited for the learner, not the learner for it";
}

TEST_F(ActorStreamTest, DisconnectedStreamDeliversAPartialUnroll) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 4);
  actor.Vanish();
  const RolloutBatch batch = NextRollouts();
  EXPECT_EQ(CheckColumn(batch, 0, 5).last, 3);
  EXPECT_EQ(CheckColumn(batch, 1, 5).last, 3);
  EXPECT_EQ(batch.num_transitions, Stat(*pool_, "steps_sampled"));
  EXPECT_TRUE(StatBecomes(*pool_, "rollouts_partial", 2));
}

TEST_F(ActorStreamTest, ByeMayTerminateTheEpisodes) {
  StartOpenPool([](PoolOptions& options) { options.batch_size = 1; });
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 2);
  actor.Send(actor.StepMessage(2));
  actor.SendBye(v1::Bye::REASON_TERMINATED);
  EXPECT_TRUE(actor.Status().ok()) << "a Bye may come while the actions are owed";
  const RolloutBatch batch = NextRollouts();
  EXPECT_EQ(std::vector<bool>(batch.terminated.as<bool>(), batch.terminated.as<bool>() + 4),
            (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(std::count(batch.truncated.as<bool>(), batch.truncated.as<bool>() + 6, true), 0);
}

TEST_F(ActorStreamTest, ByeIsHeardWhileTheModelTakesLong) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 2);
  actor.Send(actor.StepMessage(2));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
  actor.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(actor.Status().ok());
  EXPECT_EQ(Stat(*pool_, "streams_ended_bye"), 1);
}

TEST_F(ActorStreamTest, PeerThatGoesWhileTheModelDecidesIsNoticed) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 2);
  actor.Send(actor.StepMessage(2));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
  actor.Vanish();
  EXPECT_TRUE(StatBecomes(*pool_, "streams_ended_disconnect", 1));
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 0);
}

TEST_F(ActorStreamTest, StepIsAnsweredAfterTheModelTookLong) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 2);
  actor.Send(actor.StepMessage(2));
  const auto batch = pool_->NextInference(kPatience);
  ASSERT_TRUE(batch.ok());
  std::this_thread::sleep_for(milliseconds(500));  // lets the stream begin to read meanwhile; no check depends on it
  EXPECT_TRUE(AnswerBatch(**batch).ok());
  EXPECT_TRUE(actor.ReadActions());
  Walk(actor, 2);
}

TEST_F(ActorStreamTest, UnrollShorterThanMinPartialStepsIsDropped) {
  StartOpenPool([](PoolOptions& options) { options.min_partial_steps = 4; });
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 4);
  EXPECT_EQ(Stat(*pool_, "steps_in_flight"), 6);
  actor.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(actor.Status().ok());
  EXPECT_EQ(Stat(*pool_, "steps_dropped_partial"), Stat(*pool_, "steps_sampled"));
  EXPECT_EQ(Stat(*pool_, "rollouts_queued"), 0);
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(ActorStreamTest, FullRolloutQueueParksTheStream) {
  StartOpenPool([](PoolOptions& options) { options.max_queued_rollouts = 2; });
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 5);
  actor.Send(actor.StepMessage(5));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  EXPECT_EQ(Stat(*pool_, "rollouts_queued"), 2);
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 0);

  TestActor newcomer(pool_->address(), 1, 2);
  ASSERT_TRUE(newcomer.Join());
  newcomer.Send(newcomer.StepMessage(0));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 2)) << "nor does a new stream start an unroll";

  NextRollouts();
  EXPECT_EQ(Stat(*pool_, "streams_parked"), 1) << "two rollouts were taken: the two environments that came first go on";
  EXPECT_EQ(Stat(*pool_, "rollouts_running"), 2);
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 2);
}

TEST_F(ActorStreamTest, PlaceOfAStreamThatEndsGoesToTheNext) {
  StartOpenPool([](PoolOptions& options) { options.max_queued_rollouts = 2; });
  TestActor first(pool_->address(), 2);
  ASSERT_TRUE(first.Join());
  Walk(first, 1);
  TestActor second(pool_->address(), 2, 2);
  ASSERT_TRUE(second.Join());
  second.Send(second.StepMessage(0));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  first.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 0)) << "although the learner asks for nothing";
  EXPECT_EQ(Stat(*pool_, "rollouts_running"), 2);
  EXPECT_TRUE(AnswerNext(*pool_).ok());
  EXPECT_TRUE(second.ReadActions());
}

TEST_F(ActorStreamTest, ResumedStreamIsWaitedForAgain) {
  StartOpenPool([](PoolOptions& options) {
    options.max_queued_rollouts = 4;
    options.inference = {.min_rows = 100, .max_rows = 100, .timeout = kPatience};
  });
  TestActor resumed(pool_->address(), 2);
  ASSERT_TRUE(resumed.Join());
  Walk(resumed, 10);
  resumed.Send(resumed.StepMessage(10));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  for (int i = 0; i < 2; ++i) NextRollouts();
  EXPECT_TRUE(AnswerNext(*pool_).ok());

  TestActor other(pool_->address(), 1, 2);
  ASSERT_TRUE(other.Join());
  other.Send(other.StepMessage(0));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
  EXPECT_EQ(pool_->NextInference(milliseconds(0)).status().code(), absl::StatusCode::kDeadlineExceeded);
  resumed.Vanish();
  EXPECT_TRUE(AnswerNext(*pool_).ok()) << "now every stream that is left waits";
}

TEST_F(ActorStreamTest, ParkedStreamThatEndsIsForgotten) {
  StartOpenPool([](PoolOptions& options) { options.max_queued_rollouts = 2; });
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 5);
  actor.Send(actor.StepMessage(5));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  actor.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_ended_disconnect", 1));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 0));
  NextRollouts();
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 0);
}

TEST_F(ActorStreamTest, DroppedBatchEndsItsStreams) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  actor.Send(actor.StepMessage(0));
  ASSERT_TRUE(pool_->NextInference(kPatience).ok()) << "dropped at once";
  EXPECT_EQ(actor.Status().error_code(), StatusCode::INTERNAL);
  EXPECT_EQ(Stat(*pool_, "inference_dropped"), 1);
  EXPECT_EQ(Stat(*pool_, "streams"), 0);
}

}  // namespace
}  // namespace kubebeast
