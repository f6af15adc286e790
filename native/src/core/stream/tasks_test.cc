#include "stream/tasks.h"

#include <gtest/gtest.h>

#include <limits>

namespace kubebeast {
namespace {

TEST(TasksTest, AreCountedInTheOrderOfTheirShares) {
  const Tasks tasks({{"Pong", 2}, {"Breakout", 1}});
  EXPECT_EQ(*tasks.Find("Pong"), 0);
  EXPECT_EQ(*tasks.Find("Breakout"), 1);
  EXPECT_EQ(tasks.weights(), (std::vector<double>{2, 1}));
}

TEST(TasksTest, AreTheSameInEveryNotation) {
  const Tasks tasks({{"gymnasium:CartPole-v1", 2}, {"ALE/Pong-v5", 1}, {"envpool/Pong-v5", 1}});
  EXPECT_EQ(*tasks.Find("CartPole-v1"), 0);
  EXPECT_EQ(*tasks.Find("vector/CartPole-v1"), 0);
  EXPECT_EQ(*tasks.Find("ale_py:ALE/Pong-v5"), 1);
  EXPECT_EQ(*tasks.Find("Pong-v5"), 2);
  EXPECT_FALSE(tasks.Find("CartPole-v0").ok());
  EXPECT_FALSE(tasks.Find("vector/").ok());
}

TEST(TasksTest, AnyEnvironmentIsTheOnlyTaskWithoutShares) {
  const Tasks tasks({});
  EXPECT_EQ(*tasks.Find("Pong"), 0);
  EXPECT_EQ(*tasks.Find("Breakout"), 0);
  EXPECT_EQ(tasks.weights(), (std::vector<double>{1}));
}

TEST(TasksTest, AnotherEnvironmentIsRefusedWithTheNamesOfTheTasks) {
  const absl::Status status = Tasks({{"Pong", 2}, {"Breakout", 1}}).Find("Qbert").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("Qbert"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("Pong, Breakout"), absl::string_view::npos) << status;
}

TEST(TasksTest, BadSharesAreNamed) {
  EXPECT_TRUE(ValidateTasks({}).ok());
  EXPECT_TRUE(ValidateTasks({{"Pong", 0.5}, {"Breakout", 1}}).ok());
  const std::vector<std::vector<TaskShare>> bad{{{"Pong", 1}, {"Pong", 2}},
                                                {{"Pong", 0}},
                                                {{"Pong", -1}},
                                                {{"Pong", std::numeric_limits<double>::infinity()}},
                                                {{"", 1}}};
  for (const auto& shares : bad) {
    const absl::Status status = ValidateTasks(shares);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("task_shares"), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace kubebeast
