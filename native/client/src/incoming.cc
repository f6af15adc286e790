#include "incoming.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "byte_buffer_reader.h"
#include "google/protobuf/io/coded_stream.h"
#include "tensors/leaf_values.h"
#include "wire/wire_reader.h"

namespace kubebeast::client {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr std::uint32_t kNumPayloads = 3;
constexpr std::uint32_t kWelcomeTag = Tag(1, WireType::kBytes);
constexpr std::uint32_t kActionsTag = Tag(2, WireType::kBytes);

constexpr std::uint32_t kNumWelcomeFields = 6;
constexpr std::uint32_t kRunIdTag = Tag(1, WireType::kBytes);
constexpr std::uint32_t kPackedCompressionTag = Tag(2, WireType::kBytes);
constexpr std::uint32_t kCompressionTag = Tag(2, WireType::kVarint);
constexpr std::uint32_t kVersionTag = Tag(3, WireType::kVarint);
constexpr std::uint32_t kMinorTag = Tag(4, WireType::kVarint);
constexpr std::uint32_t kLogInfoTag = Tag(5, WireType::kBytes);
constexpr std::uint32_t kWelcomeOptionsTag = Tag(6, WireType::kBytes);

constexpr std::uint32_t kNumActionsFields = 4;
constexpr std::uint32_t kStepTag = Tag(1, WireType::kVarint);
constexpr std::uint32_t kLeafTag = Tag(2, WireType::kBytes);
constexpr std::uint32_t kTracedTag = Tag(3, WireType::kVarint);
constexpr std::uint32_t kActionsOptionsTag = Tag(4, WireType::kBytes);

constexpr std::uint32_t kNumOptionsFields = 2;
constexpr std::uint32_t kEnvTag = Tag(1, WireType::kVarint);
constexpr std::uint32_t kOptionsTag = Tag(2, WireType::kBytes);

absl::Status ReadVarint(CodedInputStream* in, std::uint64_t* value) {
  return in->ReadVarint64(value) ? absl::OkStatus() : Malformed("message");
}

absl::Status ReadText(CodedInputStream* in, std::string* text) {
  int length = 0;
  return ReadLength(in, &length) && in->ReadString(text, length) ? absl::OkStatus() : Malformed("message");
}

absl::Status ReadPacked(CodedInputStream* in, std::vector<std::uint64_t>* values) {
  int length = 0;
  if (!ReadLength(in, &length)) return Malformed("welcome");
  const auto outer = in->PushLimit(length);
  absl::Status status;
  while (status.ok() && in->BytesUntilLimit() > 0) status = ReadVarint(in, &values->emplace_back());
  in->PopLimit(outer);
  return status;
}

absl::Status ReadEpisodeOptions(CodedInputStream* in, std::size_t num_envs, std::vector<EpisodeOptions>* entries) {
  std::uint64_t env = 0;
  std::string text;
  absl::Status status = ForEachSubmessageField(in, "episode_options", [&](std::uint32_t tag) -> absl::Status {
    if (tag == kEnvTag) return ReadVarint(in, &env);
    if (tag == kOptionsTag) return ReadText(in, &text);
    return SkipUnknownField(in, tag, kNumOptionsFields, "episode_options");
  });
  if (status.ok()) status = ValidateOptions(text);
  if (!status.ok()) return status;
  if (env >= num_envs) {
    return absl::InvalidArgumentError(absl::StrCat("episode_options.env: ", env, ", expected less than ", num_envs));
  }
  const auto is_same = [env](const EpisodeOptions& entry) { return entry.env == env; };
  if (std::any_of(entries->begin(), entries->end(), is_same)) {
    return absl::InvalidArgumentError(absl::StrCat("episode_options.env: ", env, " is there twice"));
  }
  entries->push_back({static_cast<std::uint32_t>(env), std::make_shared<const std::string>(std::move(text))});
  return absl::OkStatus();
}

absl::StatusOr<Response> DecodeWelcome(CodedInputStream* in, std::size_t num_envs) {
  Welcome welcome;
  absl::Status status = ForEachSubmessageField(in, "welcome", [&](std::uint32_t tag) -> absl::Status {
    switch (tag) {
      case kRunIdTag:
        return ReadText(in, &welcome.run_id);
      case kPackedCompressionTag:
        return ReadPacked(in, &welcome.compression);
      case kCompressionTag:
        return ReadVarint(in, &welcome.compression.emplace_back());
      case kVersionTag:
        return ReadVarint(in, &welcome.protocol_version);
      case kMinorTag:
        return ReadVarint(in, &welcome.protocol_minor);
      case kLogInfoTag:
        return ReadText(in, &welcome.log_info.emplace_back());
      case kWelcomeOptionsTag:
        return ReadEpisodeOptions(in, num_envs, &welcome.episode_options);
      default:
        return SkipUnknownField(in, tag, kNumWelcomeFields, "welcome");
    }
  });
  if (!status.ok()) return status;
  return welcome;
}

absl::Status ReadActionLeaf(CodedInputStream* in, std::size_t leaf, ActionMemory* actions) {
  int length = 0;
  if (!ReadLength(in, &length)) return Malformed("actions");
  if (leaf >= actions->num_leaves()) {
    return absl::InvalidArgumentError(absl::StrCat("actions.leaves: more than ", actions->num_leaves(), " entries"));
  }
  if (static_cast<std::size_t>(length) != actions->leaf_bytes(leaf)) {
    return absl::InvalidArgumentError(
        absl::StrCat("actions.leaves[", leaf, "]: ", length, " bytes, expected ", actions->leaf_bytes(leaf)));
  }
  if (!in->ReadRaw(actions->data(leaf), length)) return Malformed("actions");
  return actions->Check(leaf);
}

absl::StatusOr<Response> DecodeActions(CodedInputStream* in, ActionMemory* memory) {
  Actions actions;
  std::size_t num_leaves = 0;
  std::uint64_t traced = 0;
  absl::Status status = ForEachSubmessageField(in, "actions", [&](std::uint32_t tag) -> absl::Status {
    if (tag == kStepTag) return ReadVarint(in, &actions.step);
    if (tag == kLeafTag) return ReadActionLeaf(in, num_leaves++, memory);
    if (tag == kTracedTag) return ReadVarint(in, &traced);
    if (tag == kActionsOptionsTag) return ReadEpisodeOptions(in, memory->num_envs(), &actions.episode_options);
    return SkipUnknownField(in, tag, kNumActionsFields, "actions");
  });
  if (!status.ok()) return status;
  if (num_leaves != memory->num_leaves()) {
    return absl::InvalidArgumentError(
        absl::StrCat("actions.leaves: ", num_leaves, " entries, expected ", memory->num_leaves()));
  }
  actions.traced = traced != 0;
  return actions;
}

}  // namespace

ActionMemory::ActionMemory(std::vector<kubebeast::LeafSpec> leaves, std::uint32_t num_envs)
    : leaves_(std::move(leaves)), num_envs_(num_envs), views_(num_envs * leaves_.size()) {
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::size_t bytes = leaves_[leaf].frame_bytes();
    data_.push_back(std::make_unique<std::byte[]>(num_envs * bytes));
    for (std::size_t env = 0; env < num_envs; ++env) {
      views_[env * leaves_.size() + leaf] = {data_.back().get() + env * bytes, bytes};
    }
  }
}

absl::Status ActionMemory::Check(std::size_t leaf) const {
  const auto* data = reinterpret_cast<const std::uint8_t*>(data_[leaf].get());
  absl::Status status = CheckValues(leaves_[leaf], data, leaf_bytes(leaf));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("actions.leaves[", leaf, "]: ", status.message()));
}

absl::StatusOr<Response> DecodeResponse(grpc::ByteBuffer* message, ActionMemory* actions) {
  const std::size_t size = message->Length();
  ByteBufferReader reader(message);
  if (reader.compressed()) return absl::InvalidArgumentError("message: compressed by gRPC");
  CodedInputStream in(&reader);
  in.PushLimit(static_cast<int>(size));
  std::optional<Response> response;
  absl::Status status = ForEachField(&in, "message", [&](std::uint32_t tag) -> absl::Status {
    if (tag != kWelcomeTag && tag != kActionsTag) return SkipUnknownField(&in, tag, kNumPayloads, "message");
    if (response.has_value()) return absl::InvalidArgumentError("message: more than one payload");
    auto payload = tag == kWelcomeTag ? DecodeWelcome(&in, actions->num_envs()) : DecodeActions(&in, actions);
    if (!payload.ok()) return payload.status();
    response = *std::move(payload);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (!response.has_value()) return absl::InvalidArgumentError("message: neither a welcome nor actions");
  return *std::move(response);
}

}  // namespace kubebeast::client
