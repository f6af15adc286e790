// Tests of the direction in which env-servers listen: the same messages, the same guarantees.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "testing/pool_test_util.h"
#include "testing/test_env_server.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
using Stream = TestEnvServer::Stream;

class DialerTest : public OpenPoolTest {
 protected:
  void StartDialingPool(const std::function<void(PoolOptions&)>& adjust = [](PoolOptions&) {}) {
    StartOpenPool([&adjust](PoolOptions& options) {
      options.address = "";
      adjust(options);
    });
  }

  absl::Status Dial(const std::vector<const TestEnvServer*>& servers) {
    std::vector<Endpoint> endpoints;
    for (const TestEnvServer* server : servers) endpoints.push_back({server->address(), ""});
    return pool_->SetEndpoints(endpoints);
  }
};

TEST_F(DialerTest, DialedStreamsDeliverRollouts) {
  TestEnvServer first(JoinAndPlay, 0);
  TestEnvServer second(JoinAndPlay, 2);
  StartDialingPool();
  const TestLearner learner(*pool_);
  ASSERT_TRUE(Dial({&first, &second}).ok());
  ASSERT_TRUE(StatBecomes(*pool_, "streams", 2));
  std::vector<bool> seen(4);
  for (int batches = 0; std::count(seen.begin(), seen.end(), true) < 4; ++batches) {
    ASSERT_LT(batches, 10'000) << "an environment is never seen";
    const auto batch = pool_->NextRollouts(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (std::size_t column = 0; column < 2; ++column) seen[CheckColumn(*batch, column, 5).env] = true;
    EXPECT_TRUE(BooksBalance(*pool_));
  }
}

TEST_F(DialerTest, EnvServerThatEndsIsCalledAgain) {
  TestEnvServer server([](TestEnvServer& self, Stream& stream) {
    self.Join(stream);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
  });
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(3);
  EXPECT_GE(Stat(*pool_, "streams_ended_disconnect"), 2);
  EXPECT_EQ(Stat(*pool_, "dials_failed"), 0);
}

TEST_F(DialerTest, EnvServerThatRefusesIsReportedAndCalledAgain) {
  TestEnvServer server([](TestEnvServer&, Stream&) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "this env-server's stream is taken");
  });
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(2);
  const auto events = pool_->TakeStreamEvents();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].kind, StreamEvent::Kind::kDialFailed);
  EXPECT_EQ(events[0].peer, server.address());
  EXPECT_EQ(events[0].reason, "RESOURCE_EXHAUSTED");
  EXPECT_EQ(events[0].detail, "this env-server's stream is taken");
  EXPECT_GE(Stat(*pool_, "dials_failed"), 1);
}

TEST_F(DialerTest, NobodyAtTheAddressIsReported) {
  StartDialingPool();
  ASSERT_TRUE(pool_->SetEndpoints({{"127.0.0.1:1", ""}}).ok());
  ASSERT_TRUE(Eventually([this] { return Stat(*pool_, "dials_failed") >= 2; }));
  EXPECT_EQ(pool_->TakeStreamEvents()[0].reason, "UNAVAILABLE");
}

TEST_F(DialerTest, BadMessageIsAnsweredByAnEnd) {
  std::promise<v1::ActResponse> answer;
  TestEnvServer server([&answer](TestEnvServer& self, Stream& stream) {
    if (!self.Join(stream)) return grpc::Status::OK;
    stream.Write(self.StepMessage(7));
    v1::ActResponse response;
    EXPECT_TRUE(stream.Read(&response));
    EXPECT_FALSE(stream.Read(&response)) << "it is the last message";
    answer.set_value(response);
    return grpc::Status::OK;
  });
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  auto future = answer.get_future();
  ASSERT_TRUE(IsKept(future));
  const v1::End end = future.get().end();
  EXPECT_EQ(end.code(), 3U) << "INVALID_ARGUMENT";
  EXPECT_EQ(end.detail(), "observations.step: 7, expected 0");
  EXPECT_TRUE(StatBecomes(*pool_, "streams_ended_invalid", 1));
}

TEST_F(DialerTest, CompressedMessageIsAnsweredByAnEndThatSaysWhatToDo) {
  std::promise<v1::End> answer;
  TestEnvServer server(
      [&answer](TestEnvServer& self, Stream& stream) {
        v1::ActRequest hello = self.HelloMessage();
        hello.mutable_hello()->set_env_id(std::string(1000, 'x'));  // gRPC compresses only if that saves bytes
        stream.Write(hello);
        v1::ActResponse response;
        if (stream.Read(&response)) answer.set_value(response.end());
        return grpc::Status::OK;
      },
      0, GRPC_COMPRESS_GZIP);
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  auto future = answer.get_future();
  ASSERT_TRUE(IsKept(future));
  const v1::End end = future.get();
  EXPECT_EQ(end.code(), 3U) << "INVALID_ARGUMENT";
  EXPECT_NE(end.detail().find("switch the compression of the channel off"), std::string::npos) << end.detail();
  pool_->Drain();
}

TEST_F(DialerTest, EnvServerThatSaysNothingIsEnded) {
  TestEnvServer server([](TestEnvServer&, Stream& stream) {
    v1::ActResponse response;
    while (stream.Read(&response)) EXPECT_EQ(response.end().code(), 4U) << "DEADLINE_EXCEEDED";
    return grpc::Status::OK;
  });
  StartDialingPool([](PoolOptions& options) { options.handshake_timeout = milliseconds(100); });
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(2);
}

TEST_F(DialerTest, EnvServerThatReadsNothingIsCutOff) {
  std::promise<void> over;
  std::shared_future<void> wait = over.get_future().share();
  TestEnvServer server([wait](TestEnvServer&, Stream&) {
    wait.wait();
    return grpc::Status::OK;
  });
  StartDialingPool([](PoolOptions& options) { options.handshake_timeout = milliseconds(100); });
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(2);
  over.set_value();
}

TEST_F(DialerTest, ByeEndsADialedStreamWithoutAnEnd) {
  std::promise<bool> silent;
  TestEnvServer server([&silent](TestEnvServer& self, Stream& stream) {
    if (!self.Join(stream)) return grpc::Status::OK;
    v1::ActRequest bye;
    bye.mutable_bye()->set_reason(v1::Bye::REASON_SHUTDOWN);
    stream.Write(bye);
    v1::ActResponse response;
    silent.set_value(!stream.Read(&response));
    return grpc::Status::OK;
  });
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  auto future = silent.get_future();
  ASSERT_TRUE(IsKept(future));
  EXPECT_TRUE(future.get());
  EXPECT_TRUE(StatBecomes(*pool_, "streams_ended_bye", 1));
  pool_->Drain();
}

TEST_F(DialerTest, ByeOfAnEnvServerThatTakesNoMoreActionsIsHeard) {
  std::promise<void> taken;
  std::promise<void> left;
  std::atomic<bool> has_left = false;
  TestEnvServer leaving([&left, &has_left, is_taken = taken.get_future().share()](TestEnvServer& self, Stream& stream) {
    v1::ActResponse actions;
    if (has_left || !self.Join(stream) || !stream.Write(self.StepMessage(0)) || !stream.Read(&actions)) {
      return grpc::Status::OK;
    }
    v1::ActRequest bye;
    bye.mutable_bye()->set_reason(v1::Bye::REASON_SHUTDOWN);
    stream.Write(self.StepMessage(1));
    if (!IsKept(is_taken)) return grpc::Status::OK;
    stream.Write(bye);
    has_left = true;
    left.set_value();
    return grpc::Status::OK;
  });
  TestEnvServer staying(
      [future = left.get_future().share()](TestEnvServer& self, Stream& stream) {
        if (future.wait_for(kPatience) != std::future_status::ready) return grpc::Status::OK;
        return JoinAndPlay(self, stream);
      },
      2);
  StartDialingPool();
  ASSERT_TRUE(Dial({&leaving, &staying}).ok());
  ASSERT_TRUE(AnswerNext(*pool_).ok());
  const auto owed = pool_->NextInference(kPatience);
  ASSERT_TRUE(owed.ok());
  taken.set_value();
  // The step arrived after the end of the other call.
  ASSERT_TRUE(AnswerNext(*pool_).ok());
  ASSERT_TRUE(AnswerBatch(**owed).ok());
  EXPECT_TRUE(StatBecomes(*pool_, "streams_ended_bye", 1));
}

TEST_F(DialerTest, CloseTellsEnvServersAndWaitsForThem) {
  std::promise<v1::ActResponse> last;
  TestEnvServer server([&last](TestEnvServer& self, Stream& stream) {
    EXPECT_TRUE(self.Join(stream));
    last.set_value(self.Play(stream));
    return grpc::Status::OK;
  });
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(AnswerNext(*pool_).ok());
  pool_->Close(kPatience);
  auto future = last.get_future();
  ASSERT_TRUE(IsKept(future));
  const v1::End end = future.get().end();
  EXPECT_EQ(end.code(), 14U) << "UNAVAILABLE";
  EXPECT_EQ(Stat(*pool_, "streams"), 0);
  EXPECT_EQ(Stat(*pool_, "steps_in_flight"), 0);
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(DialerTest, CloseCutsOffEveryCall) {
  std::promise<void> over;
  std::shared_future<void> wait = over.get_future().share();
  const auto ignore = [wait](TestEnvServer& self, Stream& stream) {
    self.Join(stream);
    wait.wait();
    return grpc::Status::OK;
  };
  TestEnvServer playing(ignore);
  TestEnvServer refused(ignore, 2);
  StartDialingPool([](PoolOptions& options) { options.max_streams = 1; });
  ASSERT_TRUE(Dial({&playing, &refused}).ok());
  playing.WaitForCalls(1);
  refused.WaitForCalls(1);
  pool_->Close(milliseconds(10));
  over.set_value();
}

TEST_F(DialerTest, EndpointLeftOutIsNotCalledAgain) {
  TestEnvServer server([](TestEnvServer& self, Stream& stream) {
    self.Join(stream);
    return grpc::Status::OK;
  });
  TestEnvServer other(JoinAndPlay, 2);
  StartDialingPool();
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(1);
  ASSERT_TRUE(StatBecomes(*pool_, "streams_ended_disconnect", 1));
  ASSERT_TRUE(Dial({&other}).ok());
  const std::int64_t joined = Stat(*pool_, "streams_accepted");
  ASSERT_TRUE(StatBecomes(*pool_, "streams", 1));
  other.WaitForCalls(1);
  EXPECT_LE(Stat(*pool_, "streams_accepted"), joined + 2) << "one call may have been under way";
}

TEST_F(DialerTest, TokenIsSent) {
  const std::string path = testing::TempDir() + "dialer-token";
  std::ofstream(path) << "secret\n";
  TestEnvServer server(JoinAndPlay);
  StartDialingPool([&path](PoolOptions& options) { options.token_file = path; });
  ASSERT_TRUE(Dial({&server}).ok());
  server.WaitForCalls(1);
  EXPECT_EQ(server.authorization(), "Bearer secret");
}

TEST_F(DialerTest, TlsNeedsToKnowWhomToTrust) {
  StartDialingPool([](PoolOptions& options) {
    options.tls.certificate = "pool.pem";
    options.tls.key = "pool.key";
  });
  EXPECT_EQ(pool_->SetEndpoints({{"127.0.0.1:1", ""}}).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kubebeast
