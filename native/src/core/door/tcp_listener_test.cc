#include "door/tcp_listener.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "testing/descriptor_limit.h"
#include "testing/raw_connection.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

// Records one word for each connection: "accepted", or the name of its refusal.
class TcpListenerTest : public testing::Test {
 protected:
  using Lane = FrontDoor::Lane;
  using Room = FrontDoor::Room;

  void Start(bool tls = false, milliseconds patience = std::chrono::hours(1), bool blocks = false) {
    auto listener = TcpListener::Bind("127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    const absl::Status status = listener_->Start(
        {.tls = tls, .patience = patience},
        {.on_connection =
             [this](int fd, const std::string& peer, Lane lane) {
               close(fd);
               Say(lane == Lane::kSlow ? "admitted" : "accepted", peer);
             },
         .is_blocked = [blocks](const std::string&) { return blocks; },
         .make_room = [this](const std::string& peer, Lane lane) { return RoomOf(peer, lane); },
         .on_refusal = [this](const std::string& peer,
                              const ConnectionRefusal& refusal) { Say(std::string(refusal.name), peer); },
         .on_error = [this](const absl::Status& status) { Say(std::string(status.message()), ""); }});
    ASSERT_TRUE(status.ok()) << status;
  }

  // The listener's thread uses this object until it has ended.
  void TearDown() override { listener_.reset(); }

  // Waits for a verdict since the last call, and returns the newest one.
  std::string Verdict() { return VerdictAndPeer().first; }

  std::pair<std::string, std::string> VerdictAndPeer() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(said_.wait_for(lock, kPatience, [this] { return !verdict_.empty(); }));
    return {std::exchange(verdict_, {}), peer_};
  }

  // Waits for this verdict, and skips others before it.
  bool Comes(const std::string& verdict) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, kPatience, [&] { return std::exchange(verdict_, {}) == verdict; });
  }

  std::string VerdictOn(std::string_view bytes) {
    RawConnection connection(listener_->port());
    connection.Send(bytes);
    const auto [verdict, peer] = VerdictAndPeer();
    EXPECT_EQ(peer, connection.peer());
    EXPECT_TRUE(connection.IsClosed());
    return verdict;
  }

  // Ends the wait of this peer alone.
  void LetIn(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    let_in_ = peer;
  }

  std::unique_ptr<TcpListener> listener_;
  std::atomic<Room> room_ = Room::kFree;

 private:
  Room RoomOf(const std::string& peer, Lane lane) {
    const std::lock_guard lock(mutex_);
    return peer == let_in_ && lane == Lane::kOpen ? Room::kFree : room_.load();
  }

  void Say(std::string verdict, std::string peer) {
    const std::lock_guard lock(mutex_);
    verdict_ = std::move(verdict);
    peer_ = std::move(peer);
    said_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable said_;
  std::string let_in_;
  std::string verdict_;
  std::string peer_;
};

TEST_F(TcpListenerTest, WithoutTlsOnlyHttp2IsAccepted) {
  Start();
  EXPECT_EQ(VerdictOn(kHttp2Opening), "accepted");
  EXPECT_EQ(VerdictOn("PR"), "accepted") << "the rest may follow";
  EXPECT_EQ(VerdictOn(kTlsOpening), "tls");
  EXPECT_EQ(VerdictOn("GET / HTTP/1.1\r\n"), "garbage");
  EXPECT_EQ(VerdictOn("PRINT"), "garbage");
}

TEST_F(TcpListenerTest, WithTlsOnlyTlsIsAccepted) {
  Start(/*tls=*/true);
  EXPECT_EQ(VerdictOn(kTlsOpening), "accepted");
  EXPECT_EQ(VerdictOn(kHttp2Opening), "plaintext");
  EXPECT_EQ(VerdictOn("hello"), "garbage");
}

TEST_F(TcpListenerTest, ConnectionThatSaysNothingIsClosedInTime) {
  Start(/*tls=*/false, milliseconds(20));
  RawConnection connection(listener_->port());
  EXPECT_EQ(Verdict(), "silent");
  EXPECT_TRUE(connection.IsClosed());
}

TEST_F(TcpListenerTest, OldestOfTooManySilentConnectionsIsClosed) {
  const DescriptorLimit many(4096);
  Start();
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 1025; ++i) silent.push_back(std::make_unique<RawConnection>(listener_->port()));
  EXPECT_EQ(VerdictAndPeer(), std::pair(std::string("silent"), silent.front()->peer()));
  EXPECT_TRUE(silent.front()->IsClosed());
}

TEST_F(TcpListenerTest, ConnectionMaySpeakLater) {
  Start();
  RawConnection silent(listener_->port());
  RawConnection late(listener_->port());
  EXPECT_EQ(VerdictOn(kHttp2Opening), "accepted") << "nobody waits for others";
  late.Send(kHttp2Opening);
  EXPECT_EQ(Verdict(), "accepted");
}

TEST_F(TcpListenerTest, ProbeOfThePortIsKnownAsSuch) {
  Start();
  RawConnection(listener_->port());
  EXPECT_EQ(Verdict(), "closed");
}

TEST_F(TcpListenerTest, HostThatOffendsGetsInSlowly) {
  Start(/*tls=*/false, std::chrono::hours(1), /*blocks=*/true);
  const RawConnection silent(listener_->port());
  EXPECT_EQ(VerdictOn(kHttp2Opening), "admitted");
  EXPECT_EQ(VerdictOn("GET / HTTP/1.1\r\n"), "garbage");
}

TEST_F(TcpListenerTest, FloodOfAHostThatOffendsIsNotLetIn) {
  Start(/*tls=*/false, std::chrono::hours(1), /*blocks=*/true);
  room_ = Room::kIsFull;
  RawConnection flood(listener_->port());
  flood.Send(std::string(kHttp2Opening) + std::string(9000, 'x'));
  EXPECT_EQ(Verdict(), "bytes");
}

TEST_F(TcpListenerTest, ConnectionWaitsForRoom) {
  Start();
  room_ = Room::kIsFull;
  RawConnection waiting(listener_->port());
  waiting.Send(kHttp2Opening);
  EXPECT_EQ(VerdictOn("PRINT"), "garbage") << "nobody waits for it";
  room_ = Room::kFree;
  EXPECT_EQ(Verdict(), "accepted");
}

TEST_F(TcpListenerTest, ConnectionsOfAFullHostDoNotDelayThoseOfOthers) {
  Start();
  room_ = Room::kHostIsFull;
  std::vector<std::unique_ptr<RawConnection>> waiting;
  for (std::size_t i = 0; i < WaitingRoom::kMaxGuests / 4; ++i) {
    waiting.push_back(std::make_unique<RawConnection>(listener_->port()));
    waiting.back()->Send(kHttp2Opening);
  }
  EXPECT_EQ(VerdictOn("PRINT"), "garbage") << "nobody waits for it";
  LetIn(waiting.back()->peer());
  const auto [verdict, peer] = VerdictAndPeer();
  EXPECT_EQ(verdict, "accepted");
  EXPECT_EQ(peer, waiting.back()->peer());
}

TEST_F(TcpListenerTest, WithoutDescriptorsItReportsAndTriesAgain) {
  Start();
  RawConnection connection;
  {
    const RawConnection last;  // has the next free number
    const DescriptorLimit few(static_cast<rlim_t>(last.fd()) + 1);
    connection.Connect(listener_->port());
    EXPECT_EQ(Verdict(), "accepting a connection: Too many open files");
  }
  connection.Send(kHttp2Opening);
  EXPECT_TRUE(Comes("accepted"));
}

TEST_F(TcpListenerTest, WhenItCannotWaitItReportsAndTriesAgain) {
  Start();
  RawConnection connection;
  {
    const DescriptorLimit few(1);  // fewer than it polls, which poll(2) refuses
    connection.Connect(listener_->port());
    EXPECT_TRUE(Comes("waiting for connections: Invalid argument"));
  }
  connection.Send(kHttp2Opening);
  EXPECT_TRUE(Comes("accepted"));
}

}  // namespace
}  // namespace kubebeast
