#include "wire/wire_reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace kubebeast {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;

// Reads all of `bytes` as a message with known fields 1 and 2, and unexpected wire types for both.
absl::Status SkipAll(const std::string& bytes, int slice_size = -1) {
  ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  CodedInputStream in(&input);
  in.PushLimit(static_cast<int>(bytes.size()));
  return ForEachField(&in, "test", [&in](std::uint32_t tag) { return SkipUnknownField(&in, tag, 2, "test"); });
}

std::string Field(std::uint32_t number, std::uint32_t type, const std::string& value) {
  return static_cast<char>(number << 3U | type) + value;
}

TEST(WireReaderTest, SkipsUnknownFieldsOfEveryWireType) {
  const std::string bytes = Field(3, 0, "\xAC\x02") + Field(4, 1, "12345678") +
                            Field(5, 2,
                                  "\x03"
                                  "abc") +
                            Field(6, 5, "1234");
  for (const int slice_size : {1, 2, -1}) EXPECT_TRUE(SkipAll(bytes, slice_size).ok());
}

TEST(WireReaderTest, RejectsAKnownFieldWithTheWrongWireType) {
  EXPECT_EQ(SkipAll(Field(2, 0, "\x01")).message(), "test: field 2 has the wrong wire type 0");
}

TEST(WireReaderTest, RejectsWhatIsNoField) {
  const std::string too_long_varint(11, '\xFF');
  for (const std::string& bytes : {
           Field(0, 0, "\x01"),           // field number 0
           std::string(1, '\0'),          // tag 0
           Field(3, 3, Field(3, 4, "")),  // a group
           Field(3, 7, "\x01"),           // a wire type that does not exist
           Field(3, 0, too_long_varint),  // a varint without an end
           Field(3, 0, ""),               // a field without a value
           Field(3, 1, "1234567"),        // a short fixed64
           Field(3, 5, "123"),            // a short fixed32
           Field(3, 2,
                 "\x04"
                 "abc"),  // a length that leaves the message
           Field(3, 2,
                 "\xFF\xFF\xFF\xFF\x0F"
                 "a"),       // a length that does not fit an int
           too_long_varint,  // a tag without an end
       }) {
    EXPECT_EQ(SkipAll(bytes).message(), "test: truncated or malformed");
  }
}

TEST(WireReaderTest, ConfinesASubmessageToItsLength) {
  const std::string bytes = "\x02\x18\x01\x20\x05";  // length 2, field 3: 1; then a field of the outer message
  ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  CodedInputStream in(&input);
  in.PushLimit(static_cast<int>(bytes.size()));
  int num_fields = 0;
  const absl::Status status = ForEachSubmessageField(&in, "test", [&](std::uint32_t tag) {
    ++num_fields;
    return SkipUnknownField(&in, tag, 2, "test");
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(num_fields, 1);
  EXPECT_EQ(in.BytesUntilLimit(), 2);
}

TEST(WireReaderTest, LimitsMessagesToWhatAPositionCanHold) {
  EXPECT_TRUE(CheckMessageSize(100, 100).ok());
  EXPECT_FALSE(CheckMessageSize(101, 100).ok());
  EXPECT_FALSE(CheckMessageSize(std::size_t{1} << 31U, std::numeric_limits<std::size_t>::max()).ok());
}

}  // namespace
}  // namespace kubebeast
