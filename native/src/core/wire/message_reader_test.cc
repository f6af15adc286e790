#include "wire/message_reader.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <string>

namespace kubebeast {
namespace {

class MessageReaderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }
  static void TearDownTestSuite() { grpc_shutdown(); }

  // What Next hands out.
  static std::string NextOf(MessageReader& reader) {
    const void* data = nullptr;
    int size = 0;
    return reader.Next(&data, &size) ? std::string(static_cast<const char*>(data), static_cast<std::size_t>(size)) : "";
  }

  const Message message_{std::vector<absl::string_view>{"abc", "defgh", "i"}};
};

TEST_F(MessageReaderTest, HandsOutSliceAfterSlice) {
  MessageReader reader(message_);
  EXPECT_EQ(message_.size(), 9);
  EXPECT_FALSE(message_.compressed());
  for (const char* slice : {"abc", "defgh", "i", ""}) EXPECT_EQ(NextOf(reader), slice);
  EXPECT_EQ(reader.ByteCount(), 9);
  EXPECT_EQ(message_.ToString(), "abcdefghi");
}

TEST_F(MessageReaderTest, WhatIsBackedUpComesAgain) {
  MessageReader reader(message_);
  NextOf(reader);
  NextOf(reader);
  reader.BackUp(2);
  EXPECT_EQ(reader.ByteCount(), 6);
  EXPECT_EQ(NextOf(reader), "gh");
  EXPECT_EQ(reader.ByteCount(), 8);
  EXPECT_EQ(NextOf(reader), "i");
}

TEST_F(MessageReaderTest, SkipsAcrossSlicesAndNotBeyondTheEnd) {
  MessageReader reader(message_);
  EXPECT_TRUE(reader.Skip(4));
  EXPECT_EQ(reader.ByteCount(), 4);
  EXPECT_TRUE(reader.Skip(1));
  EXPECT_EQ(NextOf(reader), "fgh");
  EXPECT_TRUE(reader.Skip(1));
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
