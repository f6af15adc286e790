// Connections without a stream are counted, and reported without flooding the log.
#include "door/connection_refusal.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "testing/pool_test_util.h"
#include "testing/raw_connection.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

class ConnectionRefusalTest : public OpenPoolTest {
 protected:
  int port() const {
    const std::string address = pool_->address();
    return std::atoi(address.c_str() + address.rfind(':') + 1);
  }
};

TEST_F(ConnectionRefusalTest, IsReportedWithItsPeerAndAnExplanation) {
  StartOpenPool();
  RawConnection connection(port());
  connection.Send("GET / HTTP/1.1\r\n");
  ASSERT_TRUE(StatBecomes(*pool_, "connections_garbage", 1));
  ASSERT_TRUE(connection.IsClosed());
  const auto events = pool_->TakeStreamEvents();
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].kind, StreamEvent::Kind::kConnectionRefused);
  EXPECT_EQ(events[0].peer, connection.peer());
  EXPECT_EQ(events[0].reason, "garbage");
  EXPECT_EQ(events[0].detail, "what it sent is not gRPC");
}

TEST_F(ConnectionRefusalTest, FloodIsCountedAndReportedOnce) {
  StartOpenPool();
  for (int i = 0; i < 100; ++i) RawConnection(port()).Send("flood");
  ASSERT_TRUE(StatBecomes(*pool_, "connections_garbage", 100));
  EXPECT_EQ(pool_->TakeStreamEvents().size(), 1);
}

TEST_F(ConnectionRefusalTest, ProbesOfThePortAreNotReported) {
  StartOpenPool();
  for (int i = 0; i < 3; ++i) RawConnection probe(port());
  ASSERT_TRUE(StatBecomes(*pool_, "connections_closed", 3));
  EXPECT_TRUE(pool_->TakeStreamEvents().empty());
}

TEST_F(ConnectionRefusalTest, ConnectionThatOpensNoCallInTimeIsReported) {
  StartOpenPool([](PoolOptions& options) { options.handshake_timeout = milliseconds(100); });
  RawConnection connection(port());
  connection.Send(kHttp2Opening);
  ASSERT_TRUE(StatBecomes(*pool_, "connections_no_call", 1));
  EXPECT_EQ(pool_->TakeStreamEvents().size(), 1);
}

TEST_F(ConnectionRefusalTest, ConnectionWithAStreamIsNone) {
  StartOpenPool([](PoolOptions& options) { options.handshake_timeout = milliseconds(3000); });
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  RawConnection silent(port());
  ASSERT_TRUE(StatBecomes(*pool_, "connections_silent", 1));
  EXPECT_EQ(Stat(*pool_, "connections_no_call"), 0);
  Walk(actor, 1);
}

}  // namespace
}  // namespace kubebeast
