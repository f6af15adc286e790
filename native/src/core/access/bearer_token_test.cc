#include "access/bearer_token.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace kubebeast {
namespace {

class BearerTokenTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      testing::TempDir() + "token-" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const BearerToken token_{path_};
};

TEST_F(BearerTokenTest, NoFileAcceptsEverybody) { EXPECT_TRUE(BearerToken("").Check(std::nullopt).ok()); }

TEST_F(BearerTokenTest, AnyLineIsAcceptedAndTheFirstIsSent) {
  Write("new-secret\r\n\nold-secret\n");
  EXPECT_TRUE(token_.Check("Bearer new-secret").ok());
  EXPECT_TRUE(token_.Check("Bearer old-secret").ok());
  EXPECT_EQ(token_.Authorization().value(), "Bearer new-secret");
}

TEST_F(BearerTokenTest, NothingElseIsAccepted) {
  Write("secret\n");
  EXPECT_EQ(token_.Check(std::nullopt).message(), "the bearer token is missing");
  for (const char* value : {"secret", "Bearer", "Bearer ", "Basic secret", ""}) {
    EXPECT_EQ(token_.Check(value).message(), "the bearer token is missing") << value;
  }
  for (const char* value : {"Bearer wrong", "Bearer secret2", "Bearer secre", "Bearer  secret", "bearer SECRET"}) {
    const absl::Status status = token_.Check(value);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << value;
    EXPECT_EQ(status.message(), "the bearer token is wrong");
  }
}

TEST_F(BearerTokenTest, FileIsReadAnewForEveryCall) {
  Write("before\n");
  EXPECT_TRUE(token_.Check("Bearer before").ok());
  Write("after\n");
  EXPECT_FALSE(token_.Check("Bearer before").ok());
  EXPECT_TRUE(token_.Check("Bearer after").ok());
}

TEST_F(BearerTokenTest, SchemeIsTheSameInAnyCase) {
  Write("secret\n");
  EXPECT_TRUE(token_.Check("bearer secret").ok());
}

TEST_F(BearerTokenTest, FileThatNoTokenCanComeFromIsNamedToItsOwnerOnly) {
  for (const char* text : {"secr\xC3\xA9t\n",
                           "se\x01"
                           "cret\n",
                           "\xEF\xBB\xBFsecret\n"}) {
    Write(text);
    const absl::Status status = token_.Authorization().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(status.message(), "the token file " + path_ + " holds a character that is not visible ASCII");
    EXPECT_EQ(token_.Check("Bearer x").code(), absl::StatusCode::kUnavailable);
  }
  const BearerToken directory(testing::TempDir());
  EXPECT_EQ(directory.Authorization().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(directory.Check("Bearer x").code(), absl::StatusCode::kUnavailable);
}

TEST_F(BearerTokenTest, WithoutATokenToCompareNobodyIsAccepted) {
  for (const bool exists : {false, true}) {
    if (exists) Write("\n \n");
    const absl::Status status = token_.Check("Bearer x");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(status.message().find(path_), absl::string_view::npos) << "a peer learns no path";
    EXPECT_EQ(token_.Authorization().status().code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace kubebeast
