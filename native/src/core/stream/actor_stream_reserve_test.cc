// Tests of streams that wait in the reserve until they fit.
#include <future>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

class ActorStreamReserveTest : public OpenPoolTest {
 protected:
  void SetUp() override { Start(PoolOptions().handshake_timeout); }

  void Start(std::chrono::milliseconds handshake_timeout) {
    StartOpenPool([handshake_timeout](PoolOptions& options) {
      options.max_envs = 3;
      options.keep_surplus = true;
      options.handshake_timeout = handshake_timeout;
    });
  }

  // Sends the Hello of a stream that has to wait.
  void Wait(TestActor& actor, std::int64_t num_waiting) {
    actor.Send(actor.HelloMessage());
    ASSERT_TRUE(StatBecomes(*pool_, "streams_in_reserve", num_waiting));
  }
  static bool IsWelcomed(TestActor& actor) {
    const auto response = actor.Read();
    return response.has_value() && response->has_welcome();
  }
};

TEST_F(ActorStreamReserveTest, SurplusStreamIsWelcomedWhenASlotIsFree) {
  TestActor first(pool_->address(), 3);
  ASSERT_TRUE(first.Join());
  TestActor second(pool_->address(), 2, 3);
  Wait(second, 1);
  EXPECT_EQ(Stat(*pool_, "streams"), 1);
  EXPECT_EQ(pool_->GetStreams().size(), 1);
  first.Vanish();
  ASSERT_TRUE(IsWelcomed(second));
  EXPECT_EQ(Stat(*pool_, "streams_in_reserve"), 0);
  EXPECT_EQ(Stat(*pool_, "envs"), 2);
  Walk(second, 3);
}

TEST_F(ActorStreamReserveTest, StreamWaitsForLongerThanAHandshakeMayTake) {
  Start(std::chrono::milliseconds(1000));
  TestActor first(pool_->address(), 3);
  ASSERT_TRUE(first.Join());
  TestActor second(pool_->address(), 2, 3);
  Wait(second, 1);
  TestActor without_hello(pool_->address(), 1, 5);
  EXPECT_EQ(without_hello.Status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Stat(*pool_, "streams_in_reserve"), 1);
  first.Vanish();
  EXPECT_TRUE(IsWelcomed(second));
}

TEST_F(ActorStreamReserveTest, StreamWaitsUntilItFitsAsAWhole) {
  TestActor first(pool_->address(), 2);
  ASSERT_TRUE(first.Join());
  TestActor large(pool_->address(), 2, 2);
  Wait(large, 1);
  TestActor small(pool_->address(), 1, 4);
  ASSERT_TRUE(small.Join()) << "there is room for it";
  small.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "envs", 2));
  EXPECT_EQ(Stat(*pool_, "streams_in_reserve"), 1);
  first.Vanish();
  EXPECT_TRUE(IsWelcomed(large));
}

TEST_F(ActorStreamReserveTest, StreamThatCanNeverFitIsRefused) {
  TestActor actor(pool_->address(), 4);
  actor.Send(actor.HelloMessage());
  EXPECT_EQ(actor.Status().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 1);
}

TEST_F(ActorStreamReserveTest, ReserveIsLeftByByeAndByDisconnection) {
  TestActor first(pool_->address(), 3);
  ASSERT_TRUE(first.Join());
  TestActor polite(pool_->address(), 1, 3);
  Wait(polite, 1);
  TestActor silent(pool_->address(), 1, 4);
  Wait(silent, 2);
  polite.SendBye(v1::Bye::REASON_SHUTDOWN);
  EXPECT_TRUE(polite.Finish().ok());
  silent.Vanish();
  ASSERT_TRUE(StatBecomes(*pool_, "streams_in_reserve", 0));
  EXPECT_EQ(Stat(*pool_, "streams_rejected"), 0) << "nobody was refused";
  EXPECT_EQ(Stat(*pool_, "streams_accepted"), 1);
  EXPECT_EQ(Stat(*pool_, "streams_ended_bye"), 0) << "of accepted streams";
}

TEST_F(ActorStreamReserveTest, ObservationsBeforeTheWelcomeAreRefused) {
  TestActor first(pool_->address(), 3);
  ASSERT_TRUE(first.Join());
  TestActor hasty(pool_->address(), 1, 3);
  Wait(hasty, 1);
  hasty.Send(hasty.StepMessage(0));
  const grpc::Status status = hasty.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("came before the Welcome"), std::string::npos) << status.error_message();
  EXPECT_EQ(Stat(*pool_, "streams_in_reserve"), 0);
}

TEST_F(ActorStreamReserveTest, CloseEndsTheReserve) {
  TestActor first(pool_->address(), 3);
  ASSERT_TRUE(first.Join());
  TestActor second(pool_->address(), 1, 3);
  Wait(second, 1);
  auto status = std::async(std::launch::async, [&second] { return second.Status(); });
  pool_->Close(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience));
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Stat(*pool_, "streams_in_reserve"), 0);
}

}  // namespace
}  // namespace kubebeast
