#include "pool/actor_pool.h"

#include <unistd.h>

#include <cmath>
#include <future>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "testing/no_more_threads.h"
#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

TEST(ActorPoolTest, RolloutsHoldExactlyWhatTheStreamsSaw) {
  constexpr std::uint32_t kEnvs = 3;
  constexpr std::size_t kUnrolls = 20;
  constexpr std::size_t kT = 5;
  const auto pool = StartPool();
  std::vector<std::future<void>> actors;
  const TestLearner learner(*pool, 2);
  for (const std::uint32_t first_env : {0U, kEnvs}) {
    actors.push_back(std::async(std::launch::async, [&pool, first_env] {
      TestActor actor(pool->address(), kEnvs, first_env);
      ASSERT_TRUE(actor.Join());
      for (std::size_t step = 0; step <= kUnrolls * kT; ++step) ASSERT_TRUE(actor.Step());
      actor.SendBye(v1::Bye::REASON_SHUTDOWN);
      EXPECT_TRUE(actor.Finish().ok());
    }));
  }
  ASSERT_TRUE(pool->WaitEnvSpec(kPatience).ok());
  ASSERT_TRUE(pool->Open(2, 2).ok());

  std::map<std::uint32_t, std::int64_t> next_step;
  for (std::size_t i = 0; i < kUnrolls * 2 * kEnvs / 2; ++i) {
    const auto batch = pool->NextRollouts(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    std::size_t valid = 0;
    for (std::size_t column = 0; column < 2; ++column) {
      const RolloutColumn unroll = CheckColumn(*batch, column, kT);
      EXPECT_EQ(unroll.last, kT);
      EXPECT_EQ(unroll.first_step, std::exchange(next_step[unroll.env], unroll.first_step + kT));
      valid += unroll.num_valid;
    }
    EXPECT_EQ(batch->num_transitions, valid);
  }
  for (auto& actor : actors) actor.get();
  EXPECT_EQ(next_step.size(), 2 * kEnvs);
  EXPECT_EQ(Stat(*pool, "streams_ended_bye"), 2);
  EXPECT_EQ(Stat(*pool, "rows_received"), 2 * kEnvs * (kUnrolls * kT + 1));
  EXPECT_EQ(Stat(*pool, "inference_rows"), Stat(*pool, "rows_received"));
  EXPECT_EQ(Stat(*pool, "steps_in_flight"), 0);
  EXPECT_TRUE(BooksBalance(*pool));
}

TEST(ActorPoolTest, EpisodesAreHandedOutOnce) {
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.log_info = {"success", "missing"};
  });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  const TestLearner learner(*pool);
  TestActor actor(pool->address(), 2, 4);
  ASSERT_TRUE(actor.Join());
  for (int step = 0; step < 7; ++step) ASSERT_TRUE(actor.Step());
  const auto episodes = pool->TakeEpisodes();
  ASSERT_EQ(episodes.size(), 2);
  EXPECT_EQ(episodes[0].env_server_id, "pod-4");
  EXPECT_EQ(episodes[0].env_id, "Counter-v0");
  EXPECT_EQ(episodes[0].length, 7);
  EXPECT_FALSE(episodes[0].instance_id.empty());
  EXPECT_TRUE(IsFinal(4, static_cast<std::int64_t>(episodes[0].step)));
  ASSERT_EQ(episodes[0].info.size(), 2);
  EXPECT_EQ(episodes[0].info[0], 1.0);
  EXPECT_TRUE(std::isnan(episodes[0].info[1]));
  EXPECT_EQ(Stat(*pool, "episodes"), 2);
  EXPECT_TRUE(pool->TakeEpisodes().empty());
}

TEST(ActorPoolTest, AnOlderEnvServerGetsNoKeysOfInfo) {
  const auto pool = StartPool([](PoolOptions& options) {
    options.expected = RolloutSpec();
    options.log_info = {"success"};
  });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  for (const std::uint32_t minor : {kInfoMinor - 1, kInfoMinor}) {
    TestActor actor(pool->address(), 1);
    v1::ActRequest hello = actor.HelloMessage();
    hello.mutable_hello()->set_protocol_minor(minor);
    actor.Send(hello);
    const auto response = actor.Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->welcome().log_info_size(), minor == kInfoMinor ? 1 : 0);
  }
}

TEST(ActorPoolTest, StreamsAreWelcomedWhenThePoolOpens) {
  const auto pool = StartPool();
  TestActor actor(pool->address(), 1);
  auto joined = std::async(std::launch::async, [&actor] { return actor.Join(); });
  const auto spec = pool->WaitEnvSpec(kPatience);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->env_id, "Counter-v0");
  ASSERT_TRUE(StatBecomes(*pool, "streams_accepted", 1));
  EXPECT_EQ(Stat(*pool, "bytes_sent"), 0);
  ASSERT_TRUE(pool->Open(2, 0).ok());
  EXPECT_TRUE(joined.get());
}

TEST(ActorPoolTest, StreamsOfARefusedEnvironmentEndWithTheReasonAndTheNextAreWelcome) {
  const auto pool = StartPool();
  TestActor bomb(pool->address(), 1);
  v1::ActRequest hello = bomb.HelloMessage();
  hello.mutable_hello()->mutable_action(0)->set_num_categories(1'000'000'000);
  bomb.Send(hello);
  ASSERT_EQ(pool->WaitEnvSpec(kPatience)->action[0].num_categories, 1'000'000'000);
  TestActor good(pool->address(), 1);
  good.Send(good.HelloMessage());
  EXPECT_EQ(good.Status().error_code(), grpc::StatusCode::UNAVAILABLE) << "it may come again";
  ASSERT_TRUE(pool->RefuseEnvSpec("no model has so many logits").ok());
  const grpc::Status status = bomb.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "no model has so many logits");
  TestActor again(pool->address(), 1);
  auto joined = std::async(std::launch::async, [&again] { return again.Join(); });
  ASSERT_EQ(pool->WaitEnvSpec(kPatience)->action, RolloutSpec().action);
  ASSERT_TRUE(pool->Open(2, 0).ok());
  EXPECT_TRUE(joined.get());
}

TEST(ActorPoolTest, ListensOnAUnixSocket) {
  const std::string address = "unix:" + testing::TempDir() + "kubebeast-" + std::to_string(getpid()) + ".sock";
  const auto pool = StartPool([&address](PoolOptions& options) {
    options.address = address;
    options.expected = RolloutSpec();
  });
  EXPECT_EQ(pool->address(), address);
  ASSERT_TRUE(pool->Open(2, 0).ok());
  EXPECT_TRUE(TestActor(address, 1).Join());
}

TEST(ActorPoolTest, ListensOnEveryKindOfAddress) {
  for (const char* address : {"127.0.0.1:0", "localhost:0", "0.0.0.0:0", "[::1]:0", "[::]:0"}) {
    PoolOptions options{.address = address, .run_id = "test", .unroll_length = 1, .batch_size = 1};
    options.expected = RolloutSpec();
    auto pool = ActorPool::Create(options);
    ASSERT_TRUE(pool.ok());
    const absl::Status started = (*pool)->Start();
    if (!started.ok() && options.address.front() == '[') continue;  // no IPv6 here
    ASSERT_TRUE(started.ok()) << started;
    ASSERT_TRUE((*pool)->Open(2, 0).ok());
    const std::string bound = (*pool)->address();
    const std::string port = bound.substr(bound.rfind(':'));
    EXPECT_NE(port, ":0");
    EXPECT_TRUE(TestActor((options.address == "[::1]:0" ? "[::1]" : "127.0.0.1") + port, 1).Join()) << address;
  }
}

TEST(ActorPoolTest, AddressThatCannotBeBoundIsNamed) {
  for (const char* address : {"nowhere.invalid:4431", "127.0.0.1", "127.0.0.1:port"}) {
    const PoolOptions options{.address = address, .run_id = "test", .unroll_length = 1, .batch_size = 1};
    auto pool = ActorPool::Create(options);
    ASSERT_TRUE(pool.ok());
    const absl::Status started = (*pool)->Start();
    EXPECT_EQ(started.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(started.message().find(absl::StrCat("cannot listen on ", address)), absl::string_view::npos) << started;
  }
}

TEST(ActorPoolTest, AddressInUseIsAnError) {
  const auto pool = StartPool();
  const PoolOptions options{.address = pool->address(), .run_id = "other", .unroll_length = 1, .batch_size = 1};
  const auto second = ActorPool::Create(options);
  ASSERT_TRUE(second.ok());
  const absl::Status status = (*second)->Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(pool->address()), absl::string_view::npos) << status;
}

TEST(ActorPoolTest, MachineThatAllowsNoMoreThreadsIsAnErrorAndEndsThePool) {
  const auto running = StartPool();  // keeps the threads of gRPC, which waits for ever for those that could not start
  const std::string unix_socket = "unix:" + testing::TempDir() + "kubebeast-" + std::to_string(getpid()) + "-full";
  for (const std::string& address : {std::string(), unix_socket, std::string("127.0.0.1:0")}) {
    const PoolOptions options{.address = address, .run_id = "test", .unroll_length = 1, .batch_size = 1};
    const auto pool = ActorPool::Create(options);
    ASSERT_TRUE(pool.ok());
    const absl::Status started = [&pool] {
      const NoMoreThreads full;
      return (*pool)->Start();
    }();
    EXPECT_EQ(started.code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_TRUE(absl::StartsWith(started.message(), "cannot start a thread: ")) << started;
    EXPECT_EQ((*pool)->WaitEnvSpec(kPatience).status().code(), absl::StatusCode::kCancelled);
  }
}

TEST(ActorPoolTest, BadOptionsAreNamed) {
  const auto refusal = [](auto change) {
    PoolOptions options{.address = "127.0.0.1:0", .run_id = "", .unroll_length = 5, .batch_size = 4};
    change(options);
    const auto pool = ActorPool::Create(options);
    EXPECT_EQ(pool.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(pool.status().message());
  };
  EXPECT_EQ(refusal([](PoolOptions& options) { options.batch_size = 0; }), "batch_size = 0: must be at least 1");
  EXPECT_EQ(refusal([](PoolOptions& options) { options.max_queued_rollouts = 3; }),
            "max_queued_rollouts = 3: must be at least 4");
  EXPECT_EQ(refusal([](PoolOptions& options) { options.inference.min_rows = 300; }),
            "max_inference_rows = 256: must be at least 300");
  EXPECT_EQ(refusal([](PoolOptions& options) { options.tls.certificate = "pool.pem"; }),
            "tls_key is empty, but tls_cert is given");
  EXPECT_EQ(refusal([](PoolOptions& options) { options.tls.authorities = "ca.pem"; }),
            "tls_cert is empty: whoever listens with TLS needs a certificate");
}

TEST(ActorPoolTest, CloseWakesEveryWaiter) {
  const auto pool = StartPool([](PoolOptions& options) { options.expected = RolloutSpec(); });
  const auto unspecified = StartPool();
  ASSERT_TRUE(pool->Open(2, 2).ok());
  TestActor actor(pool->address(), 1);
  ASSERT_TRUE(actor.Join());
  actor.Send(actor.StepMessage(0));
  const auto held = pool->NextInference(kPatience);
  ASSERT_TRUE(held.ok());
  std::vector<std::future<absl::StatusCode>> waiters;
  waiters.push_back(std::async(std::launch::async, [&] { return pool->NextInference(kPatience).status().code(); }));
  waiters.push_back(std::async(std::launch::async, [&] { return pool->NextRollouts(kPatience).status().code(); }));
  waiters.push_back(
      std::async(std::launch::async, [&] { return unspecified->WaitEnvSpec(kPatience).status().code(); }));

  auto status = std::async(std::launch::async, [&actor] { return actor.Status(); });
  unspecified->Close(milliseconds(0));
  pool->Close(std::chrono::duration_cast<milliseconds>(kPatience));
  for (auto& waiter : waiters) EXPECT_EQ(waiter.get(), absl::StatusCode::kCancelled);
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(AnswerBatch(**held).ok()) << "an answer that comes too late is harmless";
}

TEST(ActorPoolTest, CloseIsIdempotentFromAnyThread) {
  const auto pool = StartPool();
  std::vector<std::thread> threads(4);
  for (std::thread& thread : threads) thread = std::thread([&pool] { pool->Close(milliseconds(100)); });
  for (std::thread& thread : threads) thread.join();
  pool->Close(milliseconds(0));
  EXPECT_EQ(pool->Start().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ActorPoolTest, InferenceBatchOutlivesThePool) {
  auto pool = StartPool([](PoolOptions& options) { options.expected = RolloutSpec(); });
  ASSERT_TRUE(pool->Open(2, 2).ok());
  TestActor actor(pool->address(), 1);
  ASSERT_TRUE(actor.Join());
  actor.Send(actor.StepMessage(0));
  const auto batch = pool->NextInference(kPatience);
  ASSERT_TRUE(batch.ok());
  pool.reset();
  EXPECT_EQ((*batch)->observation[0].as<std::int32_t>()[kStack - 1], FrameValue(0, 0));
  EXPECT_TRUE(AnswerBatch(**batch).ok());
}

}  // namespace
}  // namespace kubebeast
