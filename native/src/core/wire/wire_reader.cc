#include "wire/wire_reader.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace kubebeast {

using google::protobuf::io::CodedInputStream;

absl::Status Malformed(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, ": truncated or malformed"));
}

absl::Status CheckMessageSize(std::size_t size, std::size_t max_bytes) {
  // Positions of a CodedInputStream are ints.
  const std::size_t limit = std::min<std::size_t>(max_bytes, std::numeric_limits<int>::max() - 1);
  if (size <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("message: ", size, " bytes, at most ", limit));
}

bool ReadLength(CodedInputStream* in, int* length) {
  return in->ReadVarintSizeAsInt(length) && *length <= in->BytesUntilLimit();
}

absl::Status SkipUnknownField(CodedInputStream* in, std::uint32_t tag, std::uint32_t num_known,
                              absl::string_view message) {
  const std::uint32_t number = tag >> 3U;
  const std::uint32_t type = tag & 7U;
  if (number == 0) return Malformed(message);
  if (number <= num_known) {
    return absl::InvalidArgumentError(absl::StrCat(message, ": field ", number, " has the wrong wire type ", type));
  }
  std::uint64_t varint = 0;
  int length = 0;
  bool skipped = false;
  switch (static_cast<WireType>(type)) {
    case WireType::kVarint:
      skipped = in->ReadVarint64(&varint);
      break;
    case WireType::kFixed64:
      skipped = in->Skip(8);
      break;
    case WireType::kBytes:
      skipped = ReadLength(in, &length) && in->Skip(length);
      break;
    case WireType::kFixed32:
      skipped = in->Skip(4);
      break;
  }
  return skipped ? absl::OkStatus() : Malformed(message);
}

}  // namespace kubebeast
