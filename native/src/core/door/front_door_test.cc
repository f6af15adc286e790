#include "door/front_door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/descriptor_limit.h"
#include "testing/tcp_pair.h"

namespace kubebeast {
namespace {

using Lane = FrontDoor::Lane;
using Room = FrontDoor::Room;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kOther[] = "ipv4:10.0.1.1:4431";

class FrontDoorTest : public testing::Test {
 protected:
  void Start(milliseconds patience = std::chrono::hours(1)) {
    door_ = std::make_unique<FrontDoor>(
        FrontDoor::Terms{.patience = patience},
        FrontDoor::Handlers{.on_refusal =
                                [this](const std::string& peer, const ConnectionRefusal& refusal) {
                                  const std::lock_guard lock(mutex_);
                                  refusals_.emplace_back(peer, refusal.name);
                                  refused_.notify_all();
                                },
                            .is_suspect = [](const std::string&) { return false; }});
    ASSERT_TRUE(door_->Start().ok());
  }
  void TearDown() override { door_.reset(); }

  // Returns a connection that has entered.
  std::unique_ptr<TcpPair> Enter(Lane lane = Lane::kOpen, Clock::time_point now = Clock::now()) {
    auto tcp = std::make_unique<TcpPair>();
    EXPECT_TRUE(door_->Enter(tcp->server(), tcp->client().peer(), lane, now));
    return tcp;
  }

  // Waits for the first refusal that has not been taken, and returns the peer and the name.
  std::pair<std::string, std::string> TakeRefusal() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(refused_.wait_for(lock, kPatience, [this] { return !refusals_.empty(); }));
    if (refusals_.empty()) return {};
    auto refusal = refusals_.front();
    refusals_.erase(refusals_.begin());
    return refusal;
  }

  // Returns true if there is a refusal that has not been taken, or if one comes soon.
  bool HasRefusal() {
    std::unique_lock lock(mutex_);
    return refused_.wait_for(lock, milliseconds(20), [this] { return !refusals_.empty(); });
  }

  bool Empties() {
    return Eventually([this] { return door_->num_connections() == 0; });
  }

  std::unique_ptr<FrontDoor> door_;

 private:
  std::mutex mutex_;
  std::condition_variable refused_;
  std::vector<std::pair<std::string, std::string>> refusals_;
};

TEST_F(FrontDoorTest, NewcomerOverItsBudgetIsShutDown) {
  Start();
  const auto tcp = Enter();
  tcp->Pass(Connection::kNewcomerBytes);
  EXPECT_EQ(door_->num_connections(), 1);
  tcp->client().Send("x");
  EXPECT_EQ(TakeRefusal(), std::pair(tcp->client().peer(), std::string("bytes")));
  EXPECT_TRUE(tcp->client().IsClosed());
  EXPECT_TRUE(Empties());
}

TEST_F(FrontDoorTest, NewcomerIsOverItsBudgetHoweverFastItIsRead) {
  Start();
  // The event of a byte that is read before the door's thread wakes is lost, but not each time.
  for (int i = 0; i < 30; ++i) {
    const auto tcp = Enter();
    tcp->Pass(Connection::kNewcomerBytes);
    tcp->client().Send("x");
    char byte = 0;
    recv(tcp->server(), &byte, 1, MSG_DONTWAIT);
    EXPECT_EQ(TakeRefusal(), std::pair(tcp->client().peer(), std::string("bytes")));
  }
}

TEST_F(FrontDoorTest, NewcomerWithoutACallInTimeIsShutDown) {
  Start(milliseconds(20));
  const auto tcp = Enter();
  EXPECT_EQ(TakeRefusal().second, "no_call");
  EXPECT_TRUE(tcp->client().IsClosed());
}

TEST_F(FrontDoorTest, ConnectionThatHasCalledMayStay) {
  Start(milliseconds(20));
  const auto tcp = Enter();
  const auto connection = door_->Find(tcp->client().peer());
  ASSERT_NE(connection, nullptr);
  EXPECT_TRUE(connection->OnShortCall(Clock::now()));
  const auto late = Enter();
  EXPECT_EQ(TakeRefusal().first, late->client().peer()) << "only the other one was late";
  EXPECT_NE(door_->Find(tcp->client().peer()), nullptr);
}

TEST_F(FrontDoorTest, DescriptorIsLetGoAsSoonAsTheConnectionEnds) {
  Start();
  const auto tcp = Enter();
  const auto connection = door_->Find(tcp->client().peer());
  EXPECT_TRUE(connection->OnShortCall(Clock::now()));
  // gRPC does this at the end of a connection.
  shutdown(tcp->server(), SHUT_RDWR);
  tcp->CloseServer();
  EXPECT_TRUE(Empties());
  EXPECT_TRUE(tcp->client().IsClosed());
  EXPECT_EQ(door_->Find(tcp->client().peer()), connection) << "its calls may come later";
  EXPECT_TRUE(Eventually([&] { return door_->Find(tcp->client().peer()) == nullptr; }));
}

TEST_F(FrontDoorTest, ConnectionThatLeavesWithoutACallIsReported) {
  Start();
  auto tcp = Enter();
  const std::string peer = tcp->client().peer();
  tcp.reset();
  EXPECT_EQ(TakeRefusal(), std::pair(peer, std::string("no_call")));
}

TEST_F(FrontDoorTest, RefusalIsReportedOnce) {
  Start();
  const auto tcp = Enter();
  const auto connection = door_->Find(tcp->client().peer());
  door_->Refuse(*connection, connection_refusal::kCalls);
  door_->Refuse(*connection, connection_refusal::kBytes);
  EXPECT_EQ(TakeRefusal().second, "calls");
  EXPECT_TRUE(Empties());
  door_->Refuse(*connection, connection_refusal::kBytes);
  const auto other = Enter();
  door_->Refuse(*door_->Find(other->client().peer()), connection_refusal::kBytes);
  EXPECT_EQ(TakeRefusal().first, other->client().peer());
}

TEST_F(FrontDoorTest, NewcomersHaveABoundTogether) {
  Start();
  const Clock::time_point now = Clock::now();
  std::vector<std::unique_ptr<TcpPair>> newcomers;
  for (std::size_t i = 0; i < FrontDoor::kMaxNewcomers; ++i) {
    const std::string peer = absl::StrCat("ipv4:10.0.0.", i, ":4431");
    EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now), Room::kFree);
    newcomers.push_back(std::make_unique<TcpPair>());
    EXPECT_TRUE(door_->Enter(newcomers.back()->server(), peer, Lane::kOpen, now));
  }
  EXPECT_EQ(door_->MakeRoom(kOther, Lane::kOpen, now), Room::kIsFull);
  door_->Trust(door_->Find("ipv4:10.0.0.0:4431"));
  EXPECT_EQ(door_->MakeRoom(kOther, Lane::kOpen, now), Room::kFree) << "who has shown a token is none of them";
}

TEST_F(FrontDoorTest, ConnectionsThatHaveCalledAndHaveNoStreamHaveABoundTogether) {
  const DescriptorLimit many(8192);
  Start(seconds(1));
  std::vector<std::unique_ptr<TcpPair>> without_stream;
  const auto enter = [&] {
    without_stream.push_back(Enter());
    without_stream.back()->CloseServer();  // of which the door has a copy
    const auto connection = door_->Find(without_stream.back()->client().peer());
    return connection != nullptr && connection->OnShortCall(Clock::now());
  };
  while (without_stream.size() < FrontDoor::kMaxWithoutStream) ASSERT_TRUE(enter());
  const auto is_crowded = [&] { return !enter() || HasRefusal(); };
  EXPECT_TRUE(Eventually(is_crowded)) << "once the patience of so many is over";
  ASSERT_TRUE(HasRefusal());
  EXPECT_EQ(TakeRefusal(), std::pair(without_stream.front()->client().peer(), std::string("crowded")));
}

TEST_F(FrontDoorTest, NewcomersOfOneHostLeaveRoomForOthers) {
  constexpr milliseconds kNewcomerPatience = std::chrono::hours(1);
  Start(kNewcomerPatience);
  const Clock::time_point now = Clock::now();
  std::vector<std::unique_ptr<TcpPair>> newcomers;
  newcomers.reserve(FrontDoor::kMaxNewcomersOfHost + 1);
  for (std::size_t i = 0; i < FrontDoor::kMaxNewcomersOfHost; ++i) newcomers.push_back(Enter(Lane::kOpen, now));
  const std::string peer = newcomers.front()->client().peer();
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now), Room::kHostIsFull);
  EXPECT_EQ(door_->MakeRoom(kOther, Lane::kOpen, now), Room::kFree);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now + kNewcomerPatience / 2), Room::kFree);
  EXPECT_EQ(TakeRefusal(), std::pair(peer, std::string("crowded"))) << "the oldest of the host";
  newcomers.push_back(Enter(Lane::kOpen, now));
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now), Room::kHostIsFull);
  door_->Trust(door_->Find(newcomers.back()->client().peer()));
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now), Room::kFree);
}

TEST_F(FrontDoorTest, NewcomerOfTheSlowLaneMakesRoomAfterItsTurn) {
  Start();
  const Clock::time_point now = Clock::now();
  std::vector<std::unique_ptr<TcpPair>> newcomers;
  newcomers.reserve(FrontDoor::kMaxSlowNewcomers);
  for (std::size_t i = 0; i < FrontDoor::kMaxSlowNewcomers; ++i) newcomers.push_back(Enter(Lane::kSlow, now));
  const std::string peer = newcomers.front()->client().peer();
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, now + milliseconds(1)), Room::kIsFull);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, now), Room::kFree) << "of the open lane there are none";
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, now + FrontDoor::kSlowLaneTurn), Room::kFree);
  EXPECT_EQ(TakeRefusal().first, peer) << "the oldest";
}

TEST_F(FrontDoorTest, SlowLaneRestsUntilTheBytesOfFloodsArePaidFor) {
  Start();
  const Clock::time_point began = Clock::now();
  std::vector<std::unique_ptr<TcpPair>> floods;
  for (int i = 0; i < 160; ++i) {  // seven seconds of the lane's share
    floods.push_back(Enter(Lane::kSlow));
    floods.back()->Pass(Connection::kSlowNewcomerBytes);
  }
  for (const auto& flood : floods) {
    const auto connection = door_->Find(flood->client().peer());
    EXPECT_TRUE(Eventually([&] { return connection->num_received() >= Connection::kSlowNewcomerBytes; }));
  }
  const std::string peer = floods.front()->client().peer();
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, began), Room::kIsFull);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, Clock::now()), Room::kFree);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, Clock::now() + seconds(10)), Room::kFree);
}

TEST_F(FrontDoorTest, SlowLaneCountsRefusals) {
  Start();
  const Clock::time_point now = Clock::now();
  const auto tcp = Enter(Lane::kSlow, now);
  const std::string peer = tcp->client().peer();
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, now), Room::kFree);
  for (int i = 0; i < 100; ++i) door_->ChargeRefusal(peer);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, Clock::now()), Room::kIsFull);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kOpen, Clock::now()), Room::kFree);
  EXPECT_EQ(door_->MakeRoom(peer, Lane::kSlow, Clock::now() + seconds(3)), Room::kFree);
}

TEST_F(FrontDoorTest, PeersAreFoundAsGrpcWritesThem) {
  Start();
  const TcpPair tcp;
  ASSERT_TRUE(door_->Enter(tcp.server(), "ipv6:[fe80::1%2]:7", Lane::kOpen, Clock::now()));
  EXPECT_NE(door_->Find("ipv6:%5Bfe80::1%252%5D:7"), nullptr);
  EXPECT_EQ(door_->Find("ipv6:%5Bfe80::1%252%5D:8"), nullptr);
}

TEST_F(FrontDoorTest, CloseShutsDownWhoHasNoStream) {
  Start();
  const auto newcomer = Enter();
  const auto trusted = Enter();
  door_->Trust(door_->Find(trusted->client().peer()));
  door_->Close();
  EXPECT_TRUE(newcomer->client().IsClosed());
  trusted->Pass(1);
  door_->Stop();
  trusted->Pass(1);
  EXPECT_EQ(door_->num_connections(), 0);
}

}  // namespace
}  // namespace kubebeast
