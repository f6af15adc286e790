#include "calls/message_reader.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace kubebeast {
namespace {

class MessageReaderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }
  static void TearDownTestSuite() { grpc_shutdown(); }

  // Returns the next piece, which is empty at the end.
  static std::string NextOf(MessageReader& reader) {
    const void* data = nullptr;
    int size = 0;
    return reader.Next(&data, &size) ? std::string(static_cast<const char*>(data), static_cast<std::size_t>(size)) : "";
  }

  // Long slices, as gRPC joins short ones.
  const std::string first_ = std::string(100, 'a');
  const std::string second_ = absl::StrCat(std::string(100, 'b'), "cd");
  const std::string last_ = absl::StrCat(std::string(99, 'e'), "f");
  const Message message_{std::vector<absl::string_view>{first_, second_, last_}};
};

TEST_F(MessageReaderTest, HandsOutSliceAfterSlice) {
  MessageReader reader(message_);
  EXPECT_EQ(message_.size(), 302);
  EXPECT_FALSE(message_.compressed());
  for (const std::string& slice : {first_, second_, last_, std::string()}) EXPECT_EQ(NextOf(reader), slice);
  EXPECT_EQ(reader.ByteCount(), 302);
  EXPECT_EQ(message_.ToString(), first_ + second_ + last_);
}

TEST_F(MessageReaderTest, WhatIsBackedUpComesAgain) {
  MessageReader reader(message_);
  NextOf(reader);
  NextOf(reader);
  reader.BackUp(2);
  EXPECT_EQ(reader.ByteCount(), 200);
  EXPECT_EQ(NextOf(reader), "cd");
  EXPECT_EQ(reader.ByteCount(), 202);
  EXPECT_EQ(NextOf(reader), last_);
}

TEST_F(MessageReaderTest, SkipsAcrossSlicesAndNotBeyondTheEnd) {
  MessageReader reader(message_);
  EXPECT_TRUE(reader.Skip(200));
  EXPECT_EQ(reader.ByteCount(), 200);
  EXPECT_TRUE(reader.Skip(1));
  EXPECT_EQ(NextOf(reader), "d");
  EXPECT_TRUE(reader.Skip(100));
  EXPECT_FALSE(reader.Skip(1));
}

TEST_F(MessageReaderTest, EmptyMessageIsAMessage) {
  const Message empty((absl::string_view()));
  MessageReader reader(empty);
  EXPECT_TRUE(empty.has_value());
  EXPECT_FALSE(Message().has_value());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(NextOf(reader), "");
}

}  // namespace
}  // namespace kubebeast
