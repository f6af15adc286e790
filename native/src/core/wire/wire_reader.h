// Parts of the protobuf wire format that the hand-written decoders share
// (https://protobuf.dev/programming-guides/encoding/). Stricter than the generated parser: a known field with a wrong
// wire type, a group, and a length beyond the end of its message are errors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"

namespace kubebeast {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Returns the tag that opens field `number`.
constexpr std::uint32_t Tag(std::uint32_t number, WireType type) {
  return number << 3U | static_cast<std::uint32_t>(type);
}

// Returns InvalidArgument with "<message>: truncated or malformed".
absl::Status Malformed(absl::string_view message);

// Returns InvalidArgument if a message of `size` bytes is larger than the receiver accepts.
absl::Status CheckMessageSize(std::size_t size, std::size_t max_bytes);

// Reads the length of a bytes field or submessage. Returns false unless that many bytes remain below the current limit.
bool ReadLength(google::protobuf::io::CodedInputStream* in, int* length);

// Skips a field unknown to this version. Returns InvalidArgument if the field number is one of 1 .. num_known, as the
// caller has handled their proper tags, or if the field is malformed; the text starts with `message`.
absl::Status SkipUnknownField(google::protobuf::io::CodedInputStream* in, std::uint32_t tag, std::uint32_t num_known,
                              absl::string_view message);

// Calls on_field(tag) for every field up to the current limit; it returns a status and consumes the field's value.
template <typename OnField>
absl::Status ForEachField(google::protobuf::io::CodedInputStream* in, absl::string_view message, OnField on_field) {
  while (in->BytesUntilLimit() > 0) {
    const std::uint32_t tag = in->ReadTag();
    if (tag == 0) return Malformed(message);
    if (absl::Status status = on_field(tag); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Calls on_field(tag) for every field of a length-delimited submessage.
template <typename OnField>
absl::Status ForEachSubmessageField(google::protobuf::io::CodedInputStream* in, absl::string_view message,
                                    OnField on_field) {
  int length = 0;
  if (!ReadLength(in, &length)) return Malformed(message);
  const auto outer = in->PushLimit(length);
  absl::Status status = ForEachField(in, message, on_field);
  in->PopLimit(outer);
  return status;
}

}  // namespace kubebeast
