#include "wire/wire_codec.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "wire/wire_reader.h"

namespace kubebeast {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr absl::string_view kMessage = "message";
constexpr std::uint32_t kNumPayloads = 3;
constexpr std::uint32_t kHelloTag = Tag(1, WireType::kBytes);
constexpr std::uint32_t kObservationsTag = Tag(2, WireType::kBytes);
constexpr std::uint32_t kByeTag = Tag(3, WireType::kBytes);
constexpr std::uint32_t kActionsTag = Tag(2, WireType::kBytes);         // field of ActResponse
constexpr std::uint32_t kActionStepTag = Tag(1, WireType::kVarint);     // field of Actions
constexpr std::uint32_t kActionLeafTag = Tag(2, WireType::kBytes);      // field of Actions
constexpr std::uint32_t kTracedTag = Tag(3, WireType::kVarint);         // field of Actions
constexpr std::uint32_t kEpisodeOptionsTag = Tag(4, WireType::kBytes);  // field of Actions
constexpr std::uint32_t kOptionsEnvTag = Tag(1, WireType::kVarint);     // field of EpisodeOptions
constexpr std::uint32_t kOptionsTextTag = Tag(2, WireType::kBytes);     // field of EpisodeOptions
constexpr std::size_t kTagBytes = 1;

constexpr int kMaxByeBytes = 4096;
constexpr int kMaxByeCharacters = 200;

std::size_t BytesOf(const EpisodeOptions& entry) {
  return kTagBytes + CodedOutputStream::VarintSize32(entry.env) + kTagBytes +
         CodedOutputStream::VarintSize64(entry.options->size()) + entry.options->size();
}

std::uint8_t* Write(const EpisodeOptions& entry, std::uint8_t* out) {
  out = CodedOutputStream::WriteTagToArray(kEpisodeOptionsTag, out);
  out = CodedOutputStream::WriteVarint64ToArray(BytesOf(entry), out);
  out = CodedOutputStream::WriteTagToArray(kOptionsEnvTag, out);
  out = CodedOutputStream::WriteVarint32ToArray(entry.env, out);
  out = CodedOutputStream::WriteTagToArray(kOptionsTextTag, out);
  out = CodedOutputStream::WriteVarint64ToArray(entry.options->size(), out);
  return CodedOutputStream::WriteRawToArray(entry.options->data(), static_cast<int>(entry.options->size()), out);
}

// UTF-8 continuation bytes are 0b10xxxxxx: every other byte starts a character.
bool StartsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

absl::StatusOr<Request> DecodeBye(CodedInputStream* in) {
  int length = 0;
  if (!ReadLength(in, &length)) return Malformed("bye");
  if (length > kMaxByeBytes) {
    return absl::InvalidArgumentError(absl::StrCat("bye: ", length, " bytes, at most ", kMaxByeBytes));
  }
  std::string bytes;
  v1::Bye message;
  if (!in->ReadString(&bytes, length) || !message.ParseFromString(bytes)) return Malformed("bye");

  Bye bye;
  bye.detail = std::move(*message.mutable_detail());
  const auto characters = std::count_if(bye.detail.begin(), bye.detail.end(), StartsCharacter);
  if (characters > kMaxByeCharacters) {
    return absl::InvalidArgumentError(
        absl::StrCat("bye.detail: ", characters, " characters, at most ", kMaxByeCharacters));
  }
  // The detail becomes part of one log line.
  std::replace_if(bye.detail.begin(), bye.detail.end(), absl::ascii_iscntrl, ' ');
  if (message.reason() == v1::Bye::REASON_SHUTDOWN) bye.reason = Bye::Reason::kShutdown;
  if (message.reason() == v1::Bye::REASON_TERMINATED) bye.reason = Bye::Reason::kTerminated;
  if (message.reason() == v1::Bye::REASON_ENVIRONMENT_FAILED) bye.reason = Bye::Reason::kEnvironmentFailed;
  return Request(std::move(bye));
}

}  // namespace

StreamCodec::StreamCodec(const Hello& hello, WireLimits limits)
    : spec_(hello.spec),
      num_envs_(hello.num_envs),
      compression_(hello.compression),
      limits_(limits),
      expected_{.step = 0,
                .is_first = std::vector<std::uint8_t>(hello.num_envs, 1),
                .num_info = limits.num_info,
                .num_agents = hello.num_agents,
                .takes_turns = hello.takes_turns} {}

absl::StatusOr<Request> StreamCodec::Decode(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size) {
  if (absl::Status status = CheckMessageSize(size, limits_.max_message_bytes); !status.ok()) return status;
  CodedInputStream in(input);
  in.PushLimit(static_cast<int>(size));

  std::optional<Request> request;
  absl::Status status = ForEachField(&in, kMessage, [&](std::uint32_t tag) -> absl::Status {
    if (tag == kHelloTag) return absl::InvalidArgumentError("message: a second hello");
    if (tag != kObservationsTag && tag != kByeTag) return SkipUnknownField(&in, tag, kNumPayloads, kMessage);
    if (request.has_value()) return absl::InvalidArgumentError("message: more than one payload");
    absl::StatusOr<Request> payload =
        tag == kByeTag ? DecodeBye(&in)
                       : DecodeObservations(&in, spec_.observation, compression_, expected_, &scratch_);
    if (!payload.ok()) return payload.status();
    request = *std::move(payload);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (!request.has_value()) return absl::InvalidArgumentError("message: no payload that this version knows");
  if (const auto* rows = std::get_if<std::shared_ptr<const ObservationRows>>(&*request)) {
    ++expected_.step;
    std::transform((*rows)->terminated.begin(), (*rows)->terminated.end(), (*rows)->truncated.begin(),
                   expected_.is_first.begin(), std::bit_or<>());
  }
  return *std::move(request);
}

std::string StreamCodec::EncodeActions(std::uint64_t step, const std::vector<const std::uint8_t*>& leaves, bool traced,
                                       const std::vector<EpisodeOptions>& episode_options) const {
  std::size_t actions_size = kTagBytes + CodedOutputStream::VarintSize64(step) + (traced ? kTagBytes + 1 : 0);
  for (const LeafSpec& leaf : spec_.action) {
    const std::size_t leaf_bytes = num_envs_ * leaf.row_bytes();
    actions_size += kTagBytes + CodedOutputStream::VarintSize64(leaf_bytes) + leaf_bytes;
  }
  for (const EpisodeOptions& entry : episode_options) {
    actions_size += kTagBytes + CodedOutputStream::VarintSize64(BytesOf(entry)) + BytesOf(entry);
  }

  std::string message(kTagBytes + CodedOutputStream::VarintSize64(actions_size) + actions_size, '\0');
  auto* out = reinterpret_cast<std::uint8_t*>(message.data());
  out = CodedOutputStream::WriteTagToArray(kActionsTag, out);
  out = CodedOutputStream::WriteVarint64ToArray(actions_size, out);
  out = CodedOutputStream::WriteTagToArray(kActionStepTag, out);
  out = CodedOutputStream::WriteVarint64ToArray(step, out);
  for (std::size_t i = 0; i < spec_.action.size(); ++i) {
    const std::size_t leaf_bytes = num_envs_ * spec_.action[i].row_bytes();
    out = CodedOutputStream::WriteTagToArray(kActionLeafTag, out);
    out = CodedOutputStream::WriteVarint64ToArray(leaf_bytes, out);
    out = CodedOutputStream::WriteRawToArray(leaves[i], static_cast<int>(leaf_bytes), out);
  }
  if (traced) {
    out = CodedOutputStream::WriteTagToArray(kTracedTag, out);
    out = CodedOutputStream::WriteVarint64ToArray(1, out);
  }
  for (const EpisodeOptions& entry : episode_options) out = Write(entry, out);
  return message;
}

}  // namespace kubebeast
