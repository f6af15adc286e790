#include "door/connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "door/stream_pass.h"
#include "door/tcp_state.h"
#include "testing/tcp_pair.h"

namespace kubebeast {
namespace {

using Condition = Connection::Condition;
using ActEnd = Connection::ActEnd;
using std::chrono::seconds;

const Clock::time_point kOpened{};

class ConnectionTest : public testing::Test {
 protected:
  Condition Look(Clock::time_point now = kOpened) { return connection_->Look(now); }

  TcpPair tcp_;
  const std::shared_ptr<Connection> connection_ =
      std::make_shared<Connection>(1, "ipv4:127.0.0.1:1", dup(tcp_.server()));
};

TEST_F(ConnectionTest, NewcomerHasABudgetOfBytesReadOrNot) {
  tcp_.Pass(Connection::kNewcomerBytes - 1000);
  tcp_.client().Send(std::string(1000, 'x'));
  EXPECT_EQ(Look(), Condition::kFine);
  tcp_.Pass(1);
  EXPECT_EQ(Look(), Condition::kOverBudget);
}

TEST_F(ConnectionTest, WindowOfANewcomerIsSmallUntilItsStreamIsAccepted) {
  const auto window = [this] {
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    EXPECT_EQ(getsockopt(tcp_.server(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, &size), 0);
    return bytes;
  };
  EXPECT_LE(window(), Connection::kNewcomerWindowBytes);
  StreamPass pass(connection_);
  pass.Accept(1);
  EXPECT_GT(window(), Connection::kNewcomerWindowBytes);
}

TEST_F(ConnectionTest, BudgetOfTheSlowLaneGrowsWithTheFirstCall) {
  const auto slow =
      std::make_shared<Connection>(2, "ipv4:127.0.0.1:2", dup(tcp_.server()), Connection::kSlowNewcomerBytes);
  tcp_.Pass(Connection::kSlowNewcomerBytes + 1);
  EXPECT_EQ(slow->Look(kOpened), Condition::kOverBudget);
  EXPECT_TRUE(slow->OnAct(kOpened));
  EXPECT_EQ(slow->Look(kOpened), Condition::kFine);
  tcp_.Pass(Connection::kNewcomerBytes - Connection::kSlowNewcomerBytes);
  EXPECT_EQ(slow->Look(kOpened), Condition::kOverBudget);
}

TEST_F(ConnectionTest, HelloOfAnyLengthFits) {
  StreamPass pass(connection_);
  pass.ExpectHello();
  tcp_.Pass(std::size_t{300} << 10U);
  EXPECT_EQ(Look(), Condition::kFine);
  StreamPass second(connection_);
  second.ExpectHello();
  tcp_.Pass(std::size_t{200} << 10U);
  EXPECT_EQ(Look(), Condition::kOverBudget) << "one long Hello at a time";
}

TEST_F(ConnectionTest, StreamMaySendAsMuchAsItsMessagesTake) {
  StreamPass pass(connection_);
  pass.ExpectHello();
  pass.Accept(/*step_bytes=*/20'000);
  for (int message = 0; message < 100; ++message) {
    tcp_.Pass(10'000);
    ASSERT_EQ(Look(), Condition::kFine) << message;
    pass.OnMessage(10'000);
  }
}

TEST_F(ConnectionTest, FramesWithoutAMessageAreOverTheBudgetOfAStreamHoweverLongItLives) {
  StreamPass pass(connection_);
  pass.ExpectHello();
  pass.Accept(/*step_bytes=*/1000);
  for (int message = 0; message < 1000; ++message) pass.OnMessage(10'000);
  EXPECT_EQ(Look(), Condition::kFine);
  tcp_.Pass(Connection::kNewcomerBytes + Connection::kRefusedMessageBytes + 2000);
  EXPECT_EQ(Look(), Condition::kOverBudget);
}

TEST_F(ConnectionTest, StreamThatWaitsMayPing) {
  StreamPass pass(connection_);
  pass.Accept(1000);
  Clock::time_point now = kOpened;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Look(now), Condition::kFine);
    tcp_.Pass(10'000);
    now += seconds(10);
  }
}

TEST_F(ConnectionTest, EndedStreamGivesItsPartBack) {
  for (int i = 0; i < 10; ++i) {
    StreamPass pass(connection_);
    pass.ExpectHello();
    pass.Accept(100'000);
  }
  EXPECT_EQ(Look(), Condition::kFine);
  tcp_.Pass(Connection::kNewcomerBytes + Connection::kRefusedMessageBytes + 1);
  EXPECT_EQ(Look(), Condition::kOverBudget);
}

TEST_F(ConnectionTest, SenderOfAMessageAboveTheLimitLearnsOfItsRefusal) {
  StreamPass pass(connection_);
  pass.ExpectHello();
  pass.Accept(/*step_bytes=*/1000);
  tcp_.Pass(Connection::kRefusedMessageBytes);
  EXPECT_EQ(Look(), Condition::kFine);
}

TEST_F(ConnectionTest, ConnectionThatHasEndedIsGone) {
  EXPECT_EQ(Look(), Condition::kFine);
  shutdown(tcp_.client().fd(), SHUT_WR);
  EXPECT_TRUE(Eventually([this] { return Look() == Condition::kGone; }));
}

TEST_F(ConnectionTest, ShutEndsItForBothSidesAndThrowsAwayWhatWasNotRead) {
  tcp_.client().Send("something");
  EXPECT_TRUE(Eventually([this] { return ReadTcpState(tcp_.server()).bytes_received == 9; }));
  connection_->Shut();
  char byte = 0;
  EXPECT_EQ(recv(tcp_.server(), &byte, 1, 0), 0);
  EXPECT_TRUE(tcp_.client().IsClosed());
  EXPECT_EQ(Look(), Condition::kGone);
}

TEST_F(ConnectionTest, CallsOfANewcomerAreAHandful) {
  int num_short = 0;
  while (connection_->OnShortCall(kOpened)) ++num_short;
  EXPECT_EQ(num_short, 16);
  Clock::time_point now = kOpened;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(connection_->OnShortCall(now += seconds(1))) << "a probe comes once a second";
}

TEST_F(ConnectionTest, ManyStreamsMayBeOpenedAtOnce) {
  for (int i = 0; i < Connection::kMaxOpenActs; ++i) EXPECT_TRUE(connection_->OnAct(kOpened));
  EXPECT_FALSE(connection_->OnAct(kOpened));
}

TEST_F(ConnectionTest, NewcomerMayCancelOneCallAndBreakTheRulesInThree) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(connection_->OnAct(kOpened));
  EXPECT_TRUE(connection_->OnActEnd(ActEnd::kCancelled));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connection_->OnActEnd(ActEnd::kOffence));
  EXPECT_FALSE(connection_->OnActEnd(ActEnd::kOffence));
  EXPECT_FALSE(connection_->OnActEnd(ActEnd::kCancelled));
}

TEST_F(ConnectionTest, ClientWithAStreamMayCancelWhatItLikes) {
  StreamPass pass(connection_);
  pass.Accept(1000);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(connection_->OnAct(kOpened));
    EXPECT_TRUE(connection_->OnActEnd(ActEnd::kCancelled));
  }
}

TEST_F(ConnectionTest, RateOfStreamsHasABound) {
  int num_acts = 0;
  while (connection_->OnAct(kOpened)) {
    connection_->OnActEnd(ActEnd::kInPeace);
    ++num_acts;
  }
  EXPECT_EQ(num_acts, 2 * Connection::kMaxOpenActs);
}

}  // namespace
}  // namespace kubebeast
