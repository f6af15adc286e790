// Tests of the events of streams that join, leave and fail.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <string>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using Kind = StreamEvent::Kind;

class StreamEventsTest : public OpenPoolTest {
 protected:
  // Blocks until every stream has ended, then takes the events.
  std::deque<StreamEvent> Events() {
    EXPECT_TRUE(StatBecomes(*pool_, "streams", 0));
    return pool_->TakeStreamEvents();
  }

  // Plays a row of a stream with one environment; returns once the actions are there.
  bool Play(TestActor& actor, std::uint64_t number, bool interrupted, bool first) {
    v1::ActRequest request = actor.StepMessage(first ? 0 : 1);
    v1::Observations& message = *request.mutable_observations();
    message.set_step(number);
    if (interrupted) {
      message.set_rewards(std::string(4, '\0'));
      message.set_truncated("\1");
      message.set_interrupted("\1");
    }
    actor.Send(request);
    return AnswerNext(*pool_).ok() && actor.Read().has_value();
  }
};

TEST_F(StreamEventsTest, SayWhoJoinedAndHowItLeft) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2, 4);
  ASSERT_TRUE(actor.Join());
  v1::ActRequest bye;
  bye.mutable_bye()->set_detail("node drained");
  actor.Send(bye);
  EXPECT_TRUE(actor.Status().ok());
  const auto events = Events();
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].kind, Kind::kJoined);
  EXPECT_EQ(events[0].env_server_id, "pod-4");
  EXPECT_EQ(events[0].instance_id, "1");
  EXPECT_EQ(events[0].env_id, "Counter-v0");
  EXPECT_EQ(events[0].num_envs, 2);
  EXPECT_NE(events[0].peer.find("127.0.0.1"), std::string::npos) << events[0].peer;
  EXPECT_EQ(events[1].kind, Kind::kLeft);
  EXPECT_EQ(events[1].reason, "bye");
  EXPECT_EQ(events[1].detail, "node drained");
  EXPECT_TRUE(pool_->TakeStreamEvents().empty());
}

TEST_F(StreamEventsTest, SayWhyAStreamWasRefusedOrClosed) {
  StartOpenPool();
  {
    TestActor stranger(pool_->address(), 1);
    v1::ActRequest hello = stranger.HelloMessage();
    hello.mutable_hello()->set_protocol_version(9);
    stranger.Send(hello);
    EXPECT_EQ(stranger.Status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    TestActor liar(pool_->address(), 1);
    ASSERT_TRUE(liar.Join());
    liar.Send(liar.StepMessage(7));
    EXPECT_EQ(liar.Status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  const auto events = Events();
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[0].kind, Kind::kRefused);
  EXPECT_EQ(events[0].reason, "FAILED_PRECONDITION");
  EXPECT_EQ(events[0].detail, "hello.protocol_version: 9, the learner speaks 1");
  EXPECT_EQ(events[2].reason, "invalid");
  EXPECT_EQ(events[2].detail, "observations.step: 7, expected 0");
}

TEST_F(StreamEventsTest, NewestAreKept) {
  Recent<int> recent(3);
  for (int i = 0; i < 5; ++i) recent.Add(i);
  EXPECT_EQ(recent.Take(), (std::deque<int>{2, 3, 4}));
}

TEST_F(StreamEventsTest, DrainingPoolRefusesNewcomersAndServesTheOthers) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  pool_->Drain();
  pool_->Drain();
  TestActor late(pool_->address(), 1, 1);
  EXPECT_EQ(late.Status().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 0) << "it did nothing wrong";
  Walk(actor, 3);
  EXPECT_EQ(Stat(*pool_, "streams"), 1);
}

TEST_F(StreamEventsTest, NewcomersToAFinishedRunAreToldThatItIsOver) {
  StartOpenPool();
  pool_->Drain();
  pool_->Drain(true);
  TestActor late(pool_->address(), 1);
  EXPECT_EQ(late.Status().error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(StreamEventsTest, EnvironmentThatStaysAwayIsInterruptedOnce) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  ASSERT_TRUE(Play(actor, 0, false, true));
  ASSERT_TRUE(Play(actor, 1, true, false));
  ASSERT_TRUE(Play(actor, 2, false, true));
  ASSERT_TRUE(Play(actor, 3, true, false));
  EXPECT_EQ(Stat(*pool_, "env_interruptions"), 1);
  ASSERT_TRUE(Play(actor, 4, false, true));
  ASSERT_TRUE(Play(actor, 5, false, false));
  ASSERT_TRUE(Play(actor, 6, true, false));
  EXPECT_EQ(Stat(*pool_, "env_interruptions"), 2);
  EXPECT_EQ(Stat(*pool_, "steps_sampled"), 1) << "from row 4 to row 5";
}

TEST_F(StreamEventsTest, AbsentRowIsNeitherAStepNorAnInterruption) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  ASSERT_TRUE(Play(actor, 0, true, true));
  ASSERT_TRUE(Play(actor, 1, true, true));
  EXPECT_EQ(Stat(*pool_, "env_interruptions"), 0);
  ASSERT_TRUE(Play(actor, 2, false, true));
  ASSERT_TRUE(Play(actor, 3, true, false));
  ASSERT_TRUE(Play(actor, 4, true, true));
  ASSERT_TRUE(Play(actor, 5, true, true));
  EXPECT_EQ(Stat(*pool_, "env_interruptions"), 1);
  EXPECT_EQ(Stat(*pool_, "steps_sampled"), 0);
}

}  // namespace
}  // namespace kubebeast
