#include "transport/pool_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

class PoolServiceTest : public OpenPoolTest {};

// Returns the names of this process's threads in the kernel.
std::vector<std::string> ThreadNames() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::getline(std::ifstream(task.path() / "comm"), names.emplace_back());
  }
  return names;
}

// gRPC's callback threads sleep for 100 ms after every second without an event, even while streams step.
TEST_F(PoolServiceTest, NoThreadsOfGrpcRunCallbacks) {
  StartOpenPool();
  TestActor actor(pool_->address(), 1);
  ASSERT_TRUE(actor.Join());
  Walk(actor, 2);
  for (const std::string& name : ThreadNames()) EXPECT_NE(name, "nexting_thread");
}

TEST_F(PoolServiceTest, OtherMethodsAreUnknown) {
  StartOpenPool();
  const auto channel = grpc::CreateChannel(pool_->address(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  const auto stream = v1::EnvServer::NewStub(channel)->Play(&context);
  v1::ActRequest request;
  EXPECT_FALSE(stream->Read(&request));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(TestActor(pool_->address(), 1).Join()) << "and calls of the contract are still taken";
}

TEST_F(PoolServiceTest, CloseDoesNotWaitForCallsThatSayNothing) {
  StartOpenPool();
  TestActor silent(pool_->address(), 1);
  ASSERT_TRUE(silent.Join());
  pool_->Close(std::chrono::milliseconds(0));
  EXPECT_FALSE(silent.Step());
}

}  // namespace
}  // namespace kubebeast
