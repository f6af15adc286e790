// Floods by peers without a token, on one connection and on many, beside a stream that goes on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "testing/pool_test_util.h"
#include "testing/raw_connection.h"
#include "testing/raw_http2.h"

namespace kubebeast {
namespace {

using http2::Frame;
using http2::Type;
using std::chrono::milliseconds;

// Bytes that a connection sends first, and then over and over, as a function of the number of the piece.
struct Flood {
  std::string name;
  std::string first;
  std::function<std::string(std::uint32_t piece)> piece;
};

void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

std::uint32_t StreamId(std::uint32_t number) { return 2 * number + 1; }

std::string Literal(std::size_t announced) {
  std::string literal("\0\005x-big\177", 8);
  for (announced -= 127; announced >= 128; announced /= 128)
    literal.push_back(static_cast<char>(announced % 128 + 128));
  return literal.append(1, static_cast<char>(announced));
}

std::vector<Flood> Floods() {
  const auto same = [](const std::string& frame) { return [frame](std::uint32_t) { return frame; }; };
  const auto calls = [](std::string_view path, Type end, std::string body, int flags) {
    return [=](std::uint32_t number) {
      return Frame(Type::kHeaders, http2::kEndHeaders, StreamId(number), http2::Headers(path)) +
             Frame(end, flags, StreamId(number), body);
    };
  };
  const std::string cancel("\0\0\0\010", 4);
  const std::string empty_message(5, '\0');
  const std::string open = Frame(Type::kHeaders, 0, 1, http2::Headers(http2::kAct));
  return {
      {"HugeLiteral", Frame(Type::kHeaders, 0, 1, http2::Headers(http2::kAct) + Literal(std::size_t{3} << 30U)),
       same(Frame(Type::kContinuation, 0, 1, std::string(16384, 'a')))},
      {"EndlessHeaders", open, same(Frame(Type::kContinuation, 0, 1, Literal(4000) + std::string(4000, 'a')))},
      {"EmptyContinuation", open, same(Frame(Type::kContinuation, 0, 1))},
      {"Ping", "", same(Frame(Type::kPing, 0, 0, "12345678"))},
      {"PingAck", "", same(Frame(Type::kPing, http2::kEndStream, 0, "12345678"))},
      {"Settings", "", same(Frame(Type::kSettings, 0, 0))},
      {"Goaway", "", same(Frame(Type::kGoaway, 0, 0, std::string(8, '\0')))},
      {"WindowUpdate", "", same(Frame(Type::kWindowUpdate, 0, 0, std::string("\0\0\0\1", 4)))},
      {"Priority", "", same(Frame(Type::kPriority, 0, 1, std::string("\0\0\0\0\020", 5)))},
      {"ResetOfNothing", "", same(Frame(Type::kReset, 0, 1, cancel))},
      {"UnknownFrames", "", same(Frame(static_cast<Type>(77), 0, 0, std::string(16, 'x')))},
      {"EmptyData", Frame(Type::kHeaders, http2::kEndHeaders, 1, http2::Headers(http2::kAct)),
       same(Frame(Type::kData, 0, 1))},
      {"RapidReset", "", calls(http2::kAct, Type::kReset, cancel, 0)},
      {"RapidResetOfHealth", "", calls(http2::kHealthCheck, Type::kReset, cancel, 0)},
      {"HealthChecks", "", calls(http2::kHealthCheck, Type::kData, empty_message, http2::kEndStream)},
      {"UnknownMethods", "", calls("/a/b", Type::kData, empty_message, http2::kEndStream)},
      {"ActsWithoutToken", "", calls(http2::kAct, Type::kData, empty_message, http2::kEndStream)},
  };
}

// A pool with a token that its honest actors have.
class ActorPoolAttacksTest : public OpenPoolTest, public testing::WithParamInterface<Flood> {
 protected:
  void SetUp() override { std::ofstream(token_file_) << "secret\n"; }
  void TearDown() override { std::filesystem::remove(token_file_); }

  void StartPoolWithToken(const std::function<void(PoolOptions&)>& adjust = [](PoolOptions&) {}) {
    StartOpenPool([&](PoolOptions& options) {
      options.token_file = token_file_;
      adjust(options);
    });
  }

  int port() const {
    const std::string address = pool_->address();
    return std::atoi(address.c_str() + address.rfind(':') + 1);
  }

  // Returns true if a connection that floods is closed long before it has sent all of its bytes.
  bool IsCutOff(const Flood& flood) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
    RawConnection connection(port());
    if (!connection.TrySend(http2::Opening() + flood.first)) return true;
    std::size_t sent = 0;
    for (std::uint32_t piece = 0; sent < kMostBytes;) {
      std::string bytes;
      for (int i = 0; i < 50; ++i) bytes += flood.piece(piece++);
      if (!connection.TrySend(bytes)) return true;
      sent += bytes.size();
    }
    return false;
  }

  // Returns the number of connections that were not admitted, or were sent away.
  std::int64_t NumRefused() const {
    std::int64_t count = 0;
    for (const char* name : {"bytes", "calls", "no_call", "blocked", "crowded"}) {
      count += Stat(*pool_, std::string("connections_") + name);
    }
    return count;
  }

 private:
  const std::string token_file_ =
      std::filesystem::temp_directory_path() / ("kubebeast-token-" + std::to_string(getpid()));
};

TEST_P(ActorPoolAttacksTest, FloodIsCutOffBesideAStreamThatGoesOn) {
  StartPoolWithToken([](PoolOptions& options) { options.max_offences = 0; });
  TestActor honest(pool_->address(), 1, 0, GRPC_COMPRESS_NONE, "secret");
  ASSERT_TRUE(honest.Join());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsCutOff(GetParam()));
    Walk(honest, 3);
  }
  EXPECT_TRUE(Eventually([this] { return NumRefused() >= 3; }));
  EXPECT_EQ(Stat(*pool_, "streams"), 1);
  EXPECT_EQ(Stat(*pool_, "streams_accepted"), 1);
  pool_->Close(milliseconds(0));
}

TEST_P(ActorPoolAttacksTest, TokenGetsInFromTheAddressOfFloods) {
  StartPoolWithToken([](PoolOptions& options) { options.max_offences = 1; });
  std::atomic<bool> is_over = false;
  std::vector<std::future<void>> attacks;
  for (int i = 0; i < 4; ++i) {
    attacks.push_back(std::async(std::launch::async, [&] {
      while (!is_over) EXPECT_TRUE(IsCutOff(GetParam()));
    }));
  }
  ASSERT_TRUE(Eventually([this] { return NumRefused() >= 5; }));
  for (std::uint32_t i = 0; i < 3; ++i) {
    TestActor honest(pool_->address(), 1, i, GRPC_COMPRESS_NONE, "secret");
    EXPECT_TRUE(honest.Join());
    Walk(honest, 2);
  }
  is_over = true;
  pool_->Close(milliseconds(0));  // else floods that wait for admission hold their connections for a while
  for (auto& attack : attacks) attack.get();
}

INSTANTIATE_TEST_SUITE_P(Floods, ActorPoolAttacksTest, testing::ValuesIn(Floods()),
                         [](const auto& flood) { return flood.param.name; });

TEST_F(ActorPoolAttacksTest, CloseEndsFloodsAtOnce) {
  StartPoolWithToken([](PoolOptions& options) { options.max_offences = 0; });
  std::atomic<bool> is_over = false;
  std::vector<std::future<void>> attacks;
  const std::vector<Flood> floods = Floods();
  for (std::size_t i = 0; i < 4; ++i) {
    attacks.push_back(std::async(std::launch::async, [&, i] {
      for (std::size_t number = i; !is_over; ++number) {
        RawConnection connection;
        if (!connection.TryConnect(port())) return;
        const Flood& flood = floods[number % floods.size()];
        connection.TrySend(http2::Opening() + flood.first + flood.piece(0) + flood.piece(1));
      }
    }));
  }
  ASSERT_TRUE(Eventually([this] { return NumRefused() >= 20; }));
  pool_->Close(milliseconds(100));
  is_over = true;
  for (auto& attack : attacks) attack.get();
}

TEST_F(ActorPoolAttacksTest, ProbesOnceASecondAreNeverAnOffence) {
  StartPoolWithToken([](PoolOptions& options) { options.max_offences = 1; });
  const std::string check = Frame(Type::kHeaders, http2::kEndHeaders, 1, http2::Headers(http2::kHealthCheck)) +
                            Frame(Type::kData, http2::kEndStream, 1, std::string(5, '\0'));
  for (int i = 0; i < 20; ++i) {
    RawConnection probe(port());
    probe.Send(http2::Opening() + check);
    EXPECT_TRUE(probe.Receives("grpc-status")) << i;
  }
  EXPECT_EQ(NumRefused(), 0);
}

TEST_F(ActorPoolAttacksTest, ClientMayOpenAndCancelSeveralStreamsOnOneConnection) {
  StartOpenPool([](PoolOptions& options) { options.max_offences = 1; });
  const auto channel = grpc::CreateChannel(pool_->address(), grpc::InsecureChannelCredentials());
  const auto stub = v1::ActorPool::NewStub(channel);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::ActRequest, v1::ActResponse>>> streams;
    for (std::uint32_t i = 0; i < 30; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(stub->Act(contexts.back().get()));
      EXPECT_TRUE(streams.back()->Write(TestMessages(1, i).HelloMessage()));
    }
    v1::ActResponse response;
    for (auto& stream : streams) EXPECT_TRUE(stream->Read(&response));
    for (auto& context : contexts) context->TryCancel();
    for (auto& stream : streams) stream->Finish();
  }
  EXPECT_EQ(Stat(*pool_, "streams_accepted"), 90);
  EXPECT_EQ(NumRefused(), 0);
}

// Connections of every kind come and go, honest ones among them. KUBEBEAST_CHURN sets their number.
TEST_F(ActorPoolAttacksTest, ConnectionsOfEveryKindComeAndGo) {
  const char* const wanted = std::getenv("KUBEBEAST_CHURN");
  const int num_connections = wanted == nullptr ? 2000 : std::atoi(wanted);
  constexpr int kThreads = 4;
  StartPoolWithToken([](PoolOptions& options) { options.max_offences = 0; });
  const TestLearner learner(*pool_);
  const std::vector<Flood> floods = Floods();
  std::vector<std::future<void>> peers;
  for (int thread = 0; thread < kThreads; ++thread) {
    peers.push_back(std::async(std::launch::async, [&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int i = 0; i < num_connections / kThreads; ++i) {
        if (random() % 16 == 0) {
          TestActor honest(pool_->address(), 1, static_cast<std::uint32_t>(thread), GRPC_COMPRESS_NONE, "secret");
          if (honest.Join()) honest.Step();
          continue;
        }
        RawConnection connection(port());
        const Flood& flood = floods[random() % floods.size()];
        std::string bytes = http2::Opening() + flood.first;
        for (std::uint32_t piece = 0; piece < random() % 40; ++piece) bytes += flood.piece(piece);
        // Cuts anywhere, even within the preface.
        connection.TrySend(bytes.substr(0, random() % (bytes.size() + 1)));
        if (random() % 4 == 0) shutdown(connection.fd(), SHUT_WR);
      }
    }));
  }
  for (auto& peer : peers) peer.get();
  EXPECT_TRUE(StatBecomes(*pool_, "streams", 0));
  EXPECT_GT(Stat(*pool_, "streams_accepted"), 0);
  EXPECT_TRUE(BooksBalance(*pool_));
}

}  // namespace
}  // namespace kubebeast
