#include "wire/leaf_reader.h"

#include <lz4.h>

#include <bit>

#include "absl/strings/str_cat.h"
#include "tensors/leaf_values.h"
#include "wire/wire_reader.h"

namespace kubebeast {
namespace {

using google::protobuf::io::CodedInputStream;
using Block = std::unique_ptr<std::uint8_t[]>;

static_assert(std::endian::native == std::endian::little, "array data is little-endian on the wire");

// One byte of an LZ4 block yields at most 255 bytes (the length extensions of the block format).
constexpr std::size_t kLz4MaxRatio = 255;

absl::Status ReadRaw(CodedInputStream* in, std::size_t length, std::size_t size, Block* block) {
  if (length != size) return absl::InvalidArgumentError(absl::StrCat(length, " bytes, expected ", size));
  *block = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  if (!in->ReadRaw(block->get(), static_cast<int>(size))) return Malformed("leaf");
  return absl::OkStatus();
}

// Consumes the next `length` bytes and returns them as one piece, or null at the end of the input.
const char* ReadContiguous(CodedInputStream* in, std::size_t length, std::string* scratch) {
  const void* direct = nullptr;
  int available = 0;
  if (in->GetDirectBufferPointer(&direct, &available) && static_cast<std::size_t>(available) >= length) {
    in->Skip(static_cast<int>(length));
    return static_cast<const char*>(direct);
  }
  if (scratch->size() < length) scratch->resize(length);
  return in->ReadRaw(scratch->data(), static_cast<int>(length)) ? scratch->data() : nullptr;
}

absl::Status ReadLz4(CodedInputStream* in, std::size_t length, std::size_t size, std::string* scratch, Block* block) {
  if (size > LZ4_MAX_INPUT_SIZE || size / kLz4MaxRatio > length) {
    return absl::InvalidArgumentError(
        absl::StrCat("an LZ4 block of ", length, " bytes cannot hold the expected ", size));
  }
  const char* source = ReadContiguous(in, length, scratch);
  if (source == nullptr) return Malformed("leaf");
  *block = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  const int written = LZ4_decompress_safe(source, reinterpret_cast<char*>(block->get()), static_cast<int>(length),
                                          static_cast<int>(size));
  if (written < 0) return absl::InvalidArgumentError("corrupt LZ4 block, or one that holds more than its size");
  if (static_cast<std::size_t>(written) != size) {
    return absl::InvalidArgumentError(absl::StrCat("the LZ4 block holds ", written, " bytes, expected ", size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Block> ReadLeaf(CodedInputStream* in, const LeafSpec& spec, Compression compression, std::size_t size,
                               std::string* scratch) {
  int length = 0;
  if (!ReadLength(in, &length)) return Malformed("leaf");
  const auto wire_bytes = static_cast<std::size_t>(length);
  Block block;
  absl::Status status = compression == Compression::kLz4 ? ReadLz4(in, wire_bytes, size, scratch, &block)
                                                         : ReadRaw(in, wire_bytes, size, &block);
  if (status.ok()) status = CheckCategories(spec, block.get(), size);
  if (!status.ok()) return status;
  return block;
}

}  // namespace kubebeast
