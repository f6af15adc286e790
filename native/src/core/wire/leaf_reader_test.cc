#include "wire/leaf_reader.h"

#include <gtest/gtest.h>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "testing/wire_test_util.h"

namespace kubebeast {
namespace {

// Reads `payload` as a leaf of `size` bytes, after its one-byte length, from slices of `slice_size` bytes.
absl::StatusOr<std::string> Read(const LeafSpec& spec, Compression compression, const std::string& payload,
                                 std::size_t size, int slice_size = -1) {
  EXPECT_LT(payload.size(), 128U);
  const std::string bytes = static_cast<char>(payload.size()) + payload;
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  google::protobuf::io::CodedInputStream in(&input);
  in.PushLimit(static_cast<int>(bytes.size()));
  std::string scratch;
  auto block = ReadLeaf(&in, spec, compression, size, &scratch);
  if (!block.ok()) return block.status();
  EXPECT_EQ(in.BytesUntilLimit(), 0);
  return std::string(reinterpret_cast<const char*>(block->get()), size);
}

const LeafSpec kImage = {.path = "image", .dtype = DType::kUint8, .shape = {100}};

TEST(LeafReaderTest, ReadsRawBytes) {
  const std::string bytes = TestBytes(100, 1);
  for (const int slice_size : {1, 7, -1}) {
    const auto read = Read(kImage, Compression::kNone, bytes, 100, slice_size);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, bytes);
  }
}

TEST(LeafReaderTest, DecompressesFromOneSliceAndAcrossSlices) {
  const std::string bytes = TestBytes(100, 1);
  for (const int slice_size : {1, 7, -1}) {
    const auto read = Read(kImage, Compression::kLz4, Lz4(bytes), 100, slice_size);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, bytes);
  }
}

TEST(LeafReaderTest, ReadsALeafWithoutElements) {
  EXPECT_EQ(*Read(kImage, Compression::kNone, "", 0), "");
  EXPECT_EQ(*Read(kImage, Compression::kLz4, Lz4(""), 0), "");
}

TEST(LeafReaderTest, RejectsRawBytesOfAnotherSize) {
  EXPECT_EQ(Read(kImage, Compression::kNone, "abc", 100).status().message(), "3 bytes, expected 100");
}

TEST(LeafReaderTest, RejectsABlockThatHoldsAnotherSize) {
  EXPECT_EQ(Read(kImage, Compression::kLz4, Lz4(TestBytes(99, 1)), 100).status().message(),
            "the LZ4 block holds 99 bytes, expected 100");
  EXPECT_EQ(Read(kImage, Compression::kLz4, Lz4(TestBytes(101, 1)), 100).status().message(),
            "corrupt LZ4 block, or one that holds more than its size");
}

TEST(LeafReaderTest, RejectsACorruptBlock) {
  EXPECT_EQ(Read(kImage, Compression::kLz4, std::string(20, '\xFF'), 100).status().message(),
            "corrupt LZ4 block, or one that holds more than its size");
}

TEST(LeafReaderTest, TakesNoMemoryForABlockThatCannotHoldTheLeaf) {
  constexpr std::size_t kImpossible = std::size_t{1} << 46U;
  EXPECT_EQ(Read(kImage, Compression::kLz4, "abc", kImpossible).status().message(),
            "an LZ4 block of 3 bytes cannot hold the expected 70368744177664");
}

TEST(LeafReaderTest, AcceptsTheBestCompressionThatLz4Reaches) {
  const std::string zeros(20'000, '\0');
  const auto read = Read(kImage, Compression::kLz4, Lz4(zeros), zeros.size());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, zeros);
}

TEST(LeafReaderTest, RejectsABoolThatIsNeitherZeroNorOne) {
  const LeafSpec spec = {.path = "mask", .dtype = DType::kBool, .shape = {3}};
  EXPECT_TRUE(Read(spec, Compression::kNone, std::string("\0\1\1", 3), 3).ok());
  EXPECT_EQ(Read(spec, Compression::kNone, std::string("\0\1\2", 3), 3).status().message(),
            "element 2 is 2, expected 0 to 1");
}

template <typename Element>
std::string Pack(std::vector<Element> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element)};
}

template <typename Element>
void ExpectCategoriesChecked(DType dtype) {
  const LeafSpec spec = {.path = "", .dtype = dtype, .shape = {2}, .num_categories = 5};
  const std::size_t size = spec.row_bytes();
  EXPECT_TRUE(Read(spec, Compression::kNone, Pack<Element>({0, 4}), size).ok()) << DTypeName(dtype);
  EXPECT_EQ(Read(spec, Compression::kNone, Pack<Element>({0, 5}), size).status().message(),
            "element 1 is 5, expected 0 to 4");
  EXPECT_FALSE(Read(spec, Compression::kNone, Pack<Element>({static_cast<Element>(-1), 0}), size).ok());
}

TEST(LeafReaderTest, RejectsACategoryOutOfRange) {
  ExpectCategoriesChecked<std::uint8_t>(DType::kUint8);
  ExpectCategoriesChecked<std::int8_t>(DType::kInt8);
  ExpectCategoriesChecked<std::int16_t>(DType::kInt16);
  ExpectCategoriesChecked<std::int32_t>(DType::kInt32);
  ExpectCategoriesChecked<std::int64_t>(DType::kInt64);
}

}  // namespace
}  // namespace kubebeast
