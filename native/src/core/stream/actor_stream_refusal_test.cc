// Tests of peers that break the contract or a limit, and of the status that they receive.
#include "stream/actor_stream.h"
#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;

class ActorStreamRefusalTest : public OpenPoolTest {
 protected:
  // Returns the status of a stream that begins with `hello`.
  grpc::Status Refusal(const v1::ActRequest& hello) {
    TestActor actor(pool_->address(), 1);
    actor.Send(hello);
    return actor.Status();
  }
};

TEST_F(ActorStreamRefusalTest, RefusesAnotherProtocolVersion) {
  StartOpenPool();
  v1::ActRequest hello = TestActor(pool_->address(), 1).HelloMessage();
  hello.mutable_hello()->set_protocol_version(kProtocolVersion + 1);
  EXPECT_EQ(Refusal(hello).error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 1);
  EXPECT_EQ(Stat(*pool_, "streams_accepted"), 0);
}

TEST_F(ActorStreamRefusalTest, RefusesOtherSpecsAndNamesTheLeaf) {
  StartOpenPool();
  v1::ActRequest hello = TestActor(pool_->address(), 1).HelloMessage();
  hello.mutable_hello()->mutable_observation(1)->add_shape(9);
  const grpc::Status status = Refusal(hello);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("\"pair\" float32 [2, 9]"), std::string::npos) << status.error_message();
}

TEST_F(ActorStreamRefusalTest, RefusesAnEnvServerOfAnotherRunWithoutAnOffence) {
  StartOpenPool([](PoolOptions& options) { options.max_offences = 1; });
  v1::ActRequest hello = TestActor(pool_->address(), 1).HelloMessage();
  hello.mutable_hello()->set_run("another-run");
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Refusal(hello);
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(),
              R"(hello.run: the env-server serves the run "another-run", the learner trains "test-run")");
  }
  hello.mutable_hello()->set_run("test-run");
  TestActor own(pool_->address(), 1);
  own.Send(hello);
  const auto response = own.Read();
  EXPECT_TRUE(response.has_value() && response->has_welcome());
}

TEST_F(ActorStreamRefusalTest, RefusesAFirstMessageThatIsNoHello) {
  StartOpenPool();
  EXPECT_EQ(Refusal(TestActor(pool_->address(), 1).StepMessage(0)).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Refusal(v1::ActRequest()).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::ActRequest garbage;
  v1::ActRequest::GetReflection()->MutableUnknownFields(&garbage)->AddLengthDelimited(1, "\xff\xff\xff\xff garbage");
  EXPECT_EQ(Refusal(garbage).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 3);
}

TEST_F(ActorStreamRefusalTest, GarbageAfterTheWelcomeEndsOnlyThatStream) {
  StartOpenPool();
  TestActor good(pool_->address(), 1);
  TestActor bad(pool_->address(), 1, 1);
  ASSERT_TRUE(good.Join());
  ASSERT_TRUE(bad.Join());
  v1::ActRequest garbage;
  v1::ActRequest::GetReflection()->MutableUnknownFields(&garbage)->AddLengthDelimited(2, "\xff\xff\xff\xff garbage");
  bad.Send(garbage);
  EXPECT_EQ(bad.Status().error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stat(*pool_, "streams_ended_invalid"), 1);
  Walk(good, 3);
}

TEST_F(ActorStreamRefusalTest, RefusesMoreThanMaxStreams) {
  StartOpenPool([](PoolOptions& options) { options.max_streams = 1; });
  TestActor first(pool_->address(), 1);
  ASSERT_TRUE(first.Join());
  TestActor second(pool_->address(), 1);
  EXPECT_EQ(second.Status().error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ActorStreamRefusalTest, RefusesMessagesOverTheLimit) {
  StartOpenPool([](PoolOptions& options) { options.wire.max_message_bytes = 10'000; });
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  v1::ActRequest large = actor.StepMessage(0);
  large.mutable_observations()->add_leaves(std::string(10'000, 'x'));
  actor.Send(large);
  EXPECT_EQ(actor.Status().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(StatBecomes(*pool_, "streams", 0));
}

TEST_F(ActorStreamRefusalTest, RefusesCompressedMessagesAndSaysWhatToDo) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1, 0, GRPC_COMPRESS_GZIP);
  v1::ActRequest hello = actor.HelloMessage();
  hello.mutable_hello()->set_env_id(std::string(1000, 'x'));  // gRPC compresses only if that saves bytes
  actor.Send(hello);
  const grpc::Status status = actor.Status();
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("switch the compression of the channel off"), std::string::npos)
      << status.error_message();
}

TEST_F(ActorStreamRefusalTest, SlotsAreFreeWhenNoAnswerIsOwedAnyMore) {
  StartOpenPool([](PoolOptions& options) { options.max_envs = 2; });
  TestActor first(pool_->address(), 2);
  ASSERT_TRUE(first.Join());
  first.Send(first.StepMessage(0));
  auto owed = pool_->NextInference(kPatience);
  ASSERT_TRUE(owed.ok());
  first.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_ended_disconnect", 1));

  const grpc::Status status = Refusal(first.HelloMessage());
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << "the batch still refers to the slots";
  EXPECT_TRUE(AnswerBatch(**owed).ok());
  // The slot becomes free a moment after the end.
  EXPECT_TRUE(Eventually([this] { return TestActor(pool_->address(), 2).Join(); }));
}

TEST_F(ActorStreamRefusalTest, ObservationsBeforeTheActionsAreAViolation) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  actor.Send(actor.StepMessage(0));
  actor.Send(actor.StepMessage(1));
  const grpc::Status status = actor.Status();
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("step 1 came before the Actions"), std::string::npos) << status.error_message();
  EXPECT_EQ(Stat(*pool_, "rows_waiting"), 0) << "the waiting row is gone with its stream";
}

TEST_F(ActorStreamRefusalTest, ObservationsBeforeTheWelcomeAreAViolation) {
  pool_ = StartPool();
  TestActor actor(pool_->address(), 1);
  actor.Send(actor.HelloMessage());
  actor.Send(actor.StepMessage(0));
  EXPECT_EQ(actor.Status().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ActorStreamRefusalTest, PeerThatDoesNotIntroduceItselfIsEnded) {
  StartOpenPool([](PoolOptions& options) { options.handshake_timeout = milliseconds(1000); });
  TestActor actor(pool_->address(), 1);
  EXPECT_EQ(actor.Status().error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 1);
}

TEST_F(ActorStreamRefusalTest, PeerThatReadsNothingIsEndedAndCutOff) {
  constexpr std::size_t kForce = std::size_t{1} << 20;
  EnvSpec spec = RolloutSpec();
  spec.action[1].shape = {kForce};
  pool_ = StartPool([&spec](PoolOptions& options) {
    options.expected = spec;
    options.max_envs = 1;
    options.handshake_timeout = milliseconds(500);
    options.step_timeout = milliseconds(500);
  });
  ASSERT_TRUE(pool_->Open(2, 0).ok());
  const auto join = [](TestActor& actor) {
    v1::ActRequest hello = actor.HelloMessage();
    hello.mutable_hello()->mutable_action(1)->set_shape(0, kForce);
    return actor.Send(hello) && actor.Read().has_value();
  };
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(join(actor));
  const std::vector<float> force(kForce);
  // One reply under way and a second one in the queue are allowed.
  for (std::uint64_t step = 0; step < 2; ++step) {
    actor.Send(actor.StepMessage(step));
    auto batch = pool_->NextInference(kPatience);
    ASSERT_TRUE(batch.ok());
    const std::int64_t choice = 0;
    const float zeros[2] = {};
    EXPECT_TRUE((*batch)
                    ->Answer({.actions = {reinterpret_cast<const std::uint8_t*>(&choice),
                                          reinterpret_cast<const std::uint8_t*>(force.data())},
                              .policy_logits = zeros,
                              .baseline = zeros,
                              .policy_version = 1,
                              .core_state = nullptr})
                    .ok());
  }
  EXPECT_TRUE(StatBecomes(*pool_, "streams_ended_invalid", 1));
  // Its status waits behind replies that the peer does not read; its slot is free nevertheless.
  EXPECT_TRUE(Eventually([&] {
    TestActor successor(pool_->address(), 1);
    return join(successor);
  }));
}

}  // namespace
}  // namespace kubebeast
