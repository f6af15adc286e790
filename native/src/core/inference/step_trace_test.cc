#include "inference/step_trace.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <vector>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::seconds;

const Clock::time_point kStart{seconds(1000)};

BatchRecord Batch() {
  return {.taken = kStart + seconds(3),
          .gathered = kStart + seconds(4),
          .answered = kStart + seconds(5),
          .num_rows = 7,
          .policy_version = 9};
}

ObservationRows Observations(std::uint64_t env_us) {
  ObservationRows rows;
  rows.step = 12;
  rows.rewards = {0, 0};
  rows.env_us = env_us;
  return rows;
}

// Returns the trace of a step with observations one second after the actions.
StepTrace TraceOf(std::uint64_t env_us) {
  StreamTrace trace;
  trace.Begin(kStart);
  trace.Receive(Observations(env_us), kStart + seconds(1));
  trace.Submit(kStart + seconds(2));
  return trace.Finish(Batch(), kStart + seconds(6)).value_or(StepTrace{});
}

TEST(StreamTraceTest, TellsWhenAStepWasWhere) {
  const StepTrace trace = TraceOf(250'000);
  EXPECT_EQ(trace.step, 12);
  EXPECT_EQ(trace.num_envs, 2);
  EXPECT_EQ(trace.batch_rows, 7);
  EXPECT_EQ(trace.policy_version, 9);
  EXPECT_EQ(trace.env_ns, 250'000'000);
  const std::vector<std::int64_t> times{trace.received_ns, trace.submitted_ns, trace.taken_ns,
                                        trace.gathered_ns, trace.answered_ns,  trace.replied_ns};
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i] - trace.actions_sent_ns, static_cast<std::int64_t>(i + 1) * 1'000'000'000) << i;
  }
}

TEST(StreamTraceTest, EnvironmentsCannotTakeLongerThanTheAnswerOfTheirServer) {
  EXPECT_EQ(TraceOf(std::numeric_limits<std::uint64_t>::max()).env_ns, 1'000'000'000);
  EXPECT_EQ(TraceOf(0).env_ns, 0);
}

TEST(StreamTraceTest, WithoutABeginThereIsNone) {
  StreamTrace trace;
  trace.Receive(Observations(1), kStart);
  trace.Submit(kStart);
  EXPECT_FALSE(trace.Finish(Batch(), kStart).has_value());
  trace.Begin(kStart);
  EXPECT_TRUE(trace.Finish(Batch(), kStart).has_value());
  EXPECT_FALSE(trace.Finish(Batch(), kStart).has_value()) << "each is told once";
}

TEST(TraceRequestTest, IsTakenOnceHoweverOftenItWasMade) {
  TraceRequest request;
  EXPECT_FALSE(request.Take());
  request.Make();
  request.Make();
  EXPECT_TRUE(request.Take());
  EXPECT_FALSE(request.Take());
}

class StepTraceTest : public OpenPoolTest {
 protected:
  // Joins as a peer of the given minor version.
  static bool JoinAs(TestActor& actor, std::uint32_t minor) {
    v1::ActRequest hello = actor.HelloMessage();
    hello.mutable_hello()->set_protocol_minor(minor);
    actor.Send(hello);
    const auto response = actor.Read();
    return response.has_value() && response->has_welcome();
  }

  // Sends the observations of `step` and returns the actions.
  v1::Actions Step(TestActor& actor, std::uint64_t step, std::uint64_t env_us = 0) {
    v1::ActRequest request = actor.StepMessage(step);
    if (env_us > 0) request.mutable_observations()->set_env_us(env_us);
    actor.Send(request);
    EXPECT_TRUE(AnswerNext(*pool_).ok());
    const auto response = actor.Read();
    EXPECT_TRUE(response.has_value());
    return response.has_value() ? response->actions() : v1::Actions();
  }
};

TEST_F(StepTraceTest, NothingIsRecordedWhenNobodyAsks) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(JoinAs(actor, kTracedMinor));
  for (std::uint64_t step = 0; step < 3; ++step) EXPECT_FALSE(Step(actor, step, 5).traced());
  EXPECT_TRUE(pool_->TakeStepTraces().empty());
}

TEST_F(StepTraceTest, TheStepAfterTheRequestIsFollowedToItsActions) {
  StartOpenPool();
  TestActor actor(pool_->address(), 2, 4);
  ASSERT_TRUE(JoinAs(actor, kTracedMinor));
  pool_->TraceNextStep();
  EXPECT_TRUE(Step(actor, 0).traced());
  EXPECT_TRUE(pool_->TakeStepTraces().empty()) << "the step has begun";
  EXPECT_FALSE(Step(actor, 1, 3).traced());
  Step(actor, 2, 3);

  const std::deque<StepTrace> traces = pool_->TakeStepTraces();
  ASSERT_EQ(traces.size(), 1);
  const StepTrace& trace = traces[0];
  EXPECT_EQ(trace.env_server_id, "pod-4");
  EXPECT_EQ(trace.instance_id, "1");
  EXPECT_EQ(trace.env_id, "Counter-v0");
  EXPECT_EQ(trace.num_envs, 2);
  EXPECT_EQ(trace.step, 1);
  EXPECT_EQ(trace.batch_rows, 2);
  EXPECT_EQ(trace.policy_version, 1);
  EXPECT_EQ(trace.env_ns, 3000);
  EXPECT_LT(trace.actions_sent_ns, trace.received_ns);
  EXPECT_EQ(trace.received_ns, trace.submitted_ns) << "not parked";
  EXPECT_LE(trace.submitted_ns, trace.taken_ns);
  EXPECT_LE(trace.taken_ns, trace.gathered_ns);
  EXPECT_LE(trace.gathered_ns, trace.answered_ns);
  EXPECT_LE(trace.answered_ns, trace.replied_ns);
  const auto age = std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(trace.replied_ns);
  EXPECT_LT(age, kPatience) << "Unix time";
  EXPECT_TRUE(pool_->TakeStepTraces().empty());
}

TEST_F(StepTraceTest, PeerOfAnOlderMinorVersionIsNotAsked) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(JoinAs(actor, kTracedMinor - 1));
  pool_->TraceNextStep();
  EXPECT_FALSE(Step(actor, 0).traced());
  Step(actor, 1);
  const std::deque<StepTrace> traces = pool_->TakeStepTraces();
  ASSERT_EQ(traces.size(), 1);
  EXPECT_EQ(traces[0].env_ns, 0);
}

TEST_F(StepTraceTest, ParkedStepIsSubmittedLater) {
  StartOpenPool([](PoolOptions& options) { options.max_queued_rollouts = 2; });
  TestActor actor(pool_->address(), 2);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 4);
  pool_->TraceNextStep();
  Walk(actor, 1);
  actor.Send(actor.StepMessage(5));
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  ASSERT_TRUE(pool_->NextRollouts(kPatience).ok());
  EXPECT_TRUE(AnswerNext(*pool_).ok());
  const std::deque<StepTrace> traces = pool_->TakeStepTraces();
  ASSERT_EQ(traces.size(), 1);
  EXPECT_LT(traces[0].received_ns, traces[0].submitted_ns);
}

TEST_F(StepTraceTest, StreamThatEndsInATracedStepLeavesNothing) {
  StartOpenPool();
  {
    TestActor actor(pool_->address(), 1);
    ASSERT_TRUE(actor.Join());
    pool_->TraceNextStep();
    Walk(actor, 1);
    actor.Send(actor.StepMessage(1));
    ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
    actor.Vanish();
    ASSERT_TRUE(StatBecomes(*pool_, "streams", 0));
  }
  TestActor next(pool_->address(), 1);
  ASSERT_TRUE(next.Join());
  Walk(next, 3);
  EXPECT_TRUE(pool_->TakeStepTraces().empty()) << "the request went with the stream";
}

TEST_F(StepTraceTest, NewestAreKept) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  const std::size_t num_steps = kMaxStepTraces + 3;
  for (std::size_t i = 0; i < num_steps; ++i) {
    pool_->TraceNextStep();
    Walk(actor, 1);
  }
  const std::deque<StepTrace> traces = pool_->TakeStepTraces();
  ASSERT_EQ(traces.size(), kMaxStepTraces);
  EXPECT_EQ(traces.back().step, num_steps - 1);
}

}  // namespace
}  // namespace kubebeast
