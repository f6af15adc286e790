#include "options/options_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "testing/test_patience.h"

namespace kubebeast {
namespace {

std::vector<std::string> Numbered(std::size_t count) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back("{\"n\":" + std::to_string(i) + "}");
  return texts;
}

class OptionsQueueTest : public testing::Test {
 protected:
  absl::StatusOr<std::size_t> RoomNow() { return queue_.WaitForRoom(Clock::time_point::min()); }

  std::shared_ptr<Stats> stats_ = std::make_shared<Stats>();
  OptionsQueue queue_{stats_};
};

TEST_F(OptionsQueueTest, TakesTheOldestFirstAndKeepsTheNewest) {
  EXPECT_EQ(queue_.Take(), nullptr);
  EXPECT_EQ(queue_.newest(), nullptr);
  ASSERT_TRUE(queue_.Push(Numbered(2)).ok());
  EXPECT_EQ(*queue_.Take(), R"({"n":0})");
  EXPECT_EQ(*queue_.Take(), R"({"n":1})");
  EXPECT_EQ(queue_.Take(), nullptr);
  EXPECT_EQ(*queue_.newest(), R"({"n":1})");
}

TEST_F(OptionsQueueTest, HasRoomWhileHalfOfThePlacesAreFree) {
  EXPECT_EQ(*RoomNow(), OptionsQueue::kMinPlaces);
  ASSERT_TRUE(queue_.Push(Numbered(OptionsQueue::kMinPlaces / 2)).ok());
  EXPECT_EQ(*RoomNow(), OptionsQueue::kMinPlaces / 2);
  ASSERT_TRUE(queue_.Push(Numbered(1)).ok());
  EXPECT_EQ(RoomNow().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(OptionsQueueTest, HasAPlaceForEachEnvironment) {
  stats_->envs = 500;
  EXPECT_EQ(*RoomNow(), 500);
  ASSERT_TRUE(queue_.Push(Numbered(500)).ok());
  EXPECT_FALSE(RoomNow().ok());
  stats_->envs = 1;
  EXPECT_FALSE(RoomNow().ok()) << "more entries than places are no room";
}

TEST_F(OptionsQueueTest, TakeWakesTheThreadThatWaitsForRoom) {
  ASSERT_TRUE(queue_.Push(Numbered(OptionsQueue::kMinPlaces)).ok());
  auto room = std::async(std::launch::async, [this] { return queue_.WaitForRoom(Clock::now() + kPatience); });
  for (std::size_t i = 0; i < OptionsQueue::kMinPlaces / 2; ++i) queue_.Take();
  EXPECT_EQ(*room.get(), OptionsQueue::kMinPlaces / 2);
}

TEST_F(OptionsQueueTest, CloseWakesTheThreadThatWaitsForRoom) {
  ASSERT_TRUE(queue_.Push(Numbered(OptionsQueue::kMinPlaces)).ok());
  auto room = std::async(std::launch::async, [this] { return queue_.WaitForRoom(Clock::now() + kPatience); });
  queue_.Close();
  EXPECT_EQ(room.get().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(OptionsQueueTest, TextsThatNoMessageMayHoldAreRefusedTogether) {
  const absl::Status refused = queue_.Push({"{}", "[1]"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(queue_.Take(), nullptr);
}

}  // namespace
}  // namespace kubebeast
