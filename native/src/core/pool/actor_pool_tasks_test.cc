// Several tasks in one pool: streams of two environments, their lanes, and their marks in the batches.
#include <atomic>
#include <future>
#include <map>
#include <string>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

constexpr char kFast[] = "Fast-v0";
constexpr char kSlow[] = "Slow-v0";
constexpr std::int64_t kFastTask = 0;
constexpr std::int64_t kSlowTask = 1;

// Joins as an env-server of `env_id`; returns true if welcomed.
bool JoinAs(TestActor& actor, const std::string& env_id) {
  v1::ActRequest hello = actor.HelloMessage();
  hello.mutable_hello()->set_env_id(env_id);
  actor.Send(hello);
  const auto response = actor.Read();
  return response.has_value() && response->has_welcome();
}

class ActorPoolTasksTest : public OpenPoolTest {
 protected:
  void SetUp() override {
    StartOpenPool([](PoolOptions& options) {
      options.batch_size = 3;
      options.max_queued_rollouts = 6;
      options.tasks = {{kFast, 2}, {kSlow, 1}};
      options.step_timeout = std::chrono::hours(1);
    });
  }

  // Returns the number of unrolls of each task in the next batch.
  std::map<std::int64_t, int> NextTasks() {
    std::map<std::int64_t, int> counts;
    const auto batch = pool_->NextRollouts(kPatience);
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) return counts;
    for (std::size_t column = 0; column < 3; ++column) ++counts[batch->task.as<std::int64_t>()[column]];
    return counts;
  }
};

TEST_F(ActorPoolTasksTest, FastTaskNeverTakesMoreThanItsShare) {
  const TestLearner learner(*pool_);
  std::atomic<bool> stopped = false;
  const auto play = [&](const char* env_id, std::uint32_t first_env, std::uint32_t num_envs) {
    TestActor actor(pool_->address(), num_envs, first_env);
    ASSERT_TRUE(JoinAs(actor, env_id));
    while (!stopped && actor.Step()) {
    }
  };
  TestActor slow(pool_->address(), 1, 20);
  ASSERT_TRUE(JoinAs(slow, kSlow));
  auto fast = std::async(std::launch::async, play, kFast, 0, 8);
  ASSERT_TRUE(StatBecomes(*pool_, "streams", 2));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1)) << "the fast one waits for the slow one's first step";
    for (int step = i == 0 ? 0 : 1; step <= 5; ++step) ASSERT_TRUE(slow.Step());
    EXPECT_EQ(NextTasks(), (std::map<std::int64_t, int>{{kFastTask, 2}, {kSlowTask, 1}}));
  }
  stopped = true;
  pool_->Close(milliseconds(1000));
  fast.get();
}

TEST_F(ActorPoolTasksTest, RowsOfAnInferenceBatchSayTheirTask) {
  TestActor fast(pool_->address(), 2);
  TestActor slow(pool_->address(), 1, 2);
  ASSERT_TRUE(JoinAs(slow, kSlow));
  ASSERT_TRUE(JoinAs(fast, kFast));
  slow.Send(slow.StepMessage(0));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 1));
  fast.Send(fast.StepMessage(0));
  ASSERT_TRUE(StatBecomes(*pool_, "rows_waiting", 3));
  std::map<std::int64_t, int> rows;
  while (Stat(*pool_, "rows_waiting") > 0) {
    const auto batch = pool_->NextInference(kPatience);
    ASSERT_TRUE(batch.ok());
    for (std::size_t row = 0; row < (*batch)->num_rows(); ++row) ++rows[(*batch)->task.as<std::int64_t>()[row]];
    ASSERT_TRUE(AnswerBatch(**batch).ok());
  }
  EXPECT_EQ(rows, (std::map<std::int64_t, int>{{kFastTask, 2}, {kSlowTask, 1}}));
}

TEST_F(ActorPoolTasksTest, ShareOfATaskWithoutStreamsGoesToTheOthers) {
  const TestLearner learner(*pool_);
  TestActor fast(pool_->address(), 3);
  {
    TestActor slow(pool_->address(), 1, 20);
    ASSERT_TRUE(JoinAs(slow, kSlow));
    ASSERT_TRUE(JoinAs(fast, kFast));
    for (int step = 0; step <= 5; ++step) ASSERT_TRUE(fast.Step());
    slow.SendBye(v1::Bye::REASON_SHUTDOWN);
    EXPECT_TRUE(slow.Finish().ok());
  }
  EXPECT_EQ(NextTasks(), (std::map<std::int64_t, int>{{kFastTask, 3}}));
}

TEST_F(ActorPoolTasksTest, ShareOfATaskWhoseStreamsFreezeGoesToTheOthers) {
  const TestLearner learner(*pool_);
  TestActor fast(pool_->address(), 3);
  TestActor slow(pool_->address(), 1, 20);
  ASSERT_TRUE(JoinAs(slow, kSlow));
  ASSERT_TRUE(JoinAs(fast, kFast));
  for (int step = 0; step <= 5; ++step) ASSERT_TRUE(fast.Step());
  EXPECT_EQ(NextTasks(), (std::map<std::int64_t, int>{{kFastTask, 3}})) << "it froze before its first step";
  for (int step = 0; step <= 5; ++step) ASSERT_TRUE(slow.Step());
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(fast.Step());
  EXPECT_EQ(NextTasks(), (std::map<std::int64_t, int>{{kFastTask, 2}, {kSlowTask, 1}})) << "it is back";
}

TEST_F(ActorPoolTasksTest, StreamOfAnotherEnvironmentIsRefusedWithTheTasks) {
  TestActor other(pool_->address(), 1);
  v1::ActRequest hello = other.HelloMessage();
  hello.mutable_hello()->set_env_id("Else-v0");
  other.Send(hello);
  const grpc::Status status = other.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("Fast-v0, Slow-v0"), std::string::npos) << status.error_message();
}

TEST(ActorPoolTaskOptionsTest, BadSharesAreRefused) {
  PoolOptions options;
  options.unroll_length = options.batch_size = 1;
  options.tasks = {{kFast, 1}, {kFast, 1}};
  EXPECT_EQ(ActorPool::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kubebeast
