#include "transport/health.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

constexpr char kService[] = "\x0a\x16kubebeast.v1.ActorPool";

class HealthTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }
  static void TearDownTestSuite() { grpc_shutdown(); }

  std::string Check(absl::string_view request) const {
    const auto response = health_.Check(Message(request));
    return response.ok() ? *response : absl::StatusCodeToString(response.status().code());
  }

  Health health_;
};

TEST_F(HealthTest, ServesUntilItIsToldOtherwise) {
  EXPECT_EQ(Check(""), "\x08\x01");
  EXPECT_EQ(Check(kService), "\x08\x01");
  health_.SetServing(false);
  EXPECT_EQ(Check(""), "\x08\x02");
  EXPECT_EQ(Check(kService), "\x08\x02");
}

TEST_F(HealthTest, OtherServicesAreUnknown) { EXPECT_EQ(Check("\x0a\x03tic"), "NOT_FOUND"); }

TEST_F(HealthTest, WhatIsNoRequestIsRefused) {
  EXPECT_EQ(Check("\x0a\x7f"), "INVALID_ARGUMENT");
  EXPECT_EQ(Check(absl::string_view("\x08\x00", 2)), "INVALID_ARGUMENT");
  EXPECT_EQ(Check("\xff\xff"), "INVALID_ARGUMENT");
  EXPECT_EQ(Check(std::string(2000, 'x')), "INVALID_ARGUMENT");
  EXPECT_EQ(health_.Check(Message()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kubebeast
