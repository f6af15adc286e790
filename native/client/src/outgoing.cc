#include "outgoing.h"

#include <lz4.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "wire/wire_reader.h"

namespace kubebeast::client {
namespace {

using google::protobuf::io::CodedOutputStream;

static_assert(std::endian::native == std::endian::little, "array data is little-endian on the wire");

constexpr std::size_t kMaxDetailCharacters = 200;

// Fields of ActRequest.
constexpr std::uint32_t kHello = 1;
constexpr std::uint32_t kObservations = 2;
constexpr std::uint32_t kBye = 3;

// Writer of a small message, field after field; fields with the default value are omitted.
class Message {
 public:
  void Varint(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    Append(Tag(field, WireType::kVarint));
    Append(value);
  }
  // Writes even an empty element of a repeated field.
  void Element(std::uint32_t field, std::string_view bytes) {
    Append(Tag(field, WireType::kBytes));
    Append(bytes.size());
    text_.append(bytes);
  }
  void Bytes(std::uint32_t field, std::string_view bytes) {
    if (!bytes.empty()) Element(field, bytes);
  }
  void Float(std::uint32_t field, float value) {
    if (value == 0) return;
    Append(Tag(field, WireType::kFixed32));
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Double(std::uint32_t field, double value) {
    Append(Tag(field, WireType::kFixed64));
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Packed(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    Message packed;
    for (const std::uint64_t value : values) packed.Append(value);
    Bytes(field, packed.text_);
  }
  const std::string& text() const { return text_; }

 private:
  void Append(std::uint64_t varint) {
    std::uint8_t bytes[10];
    text_.append(reinterpret_cast<const char*>(bytes), CodedOutputStream::WriteVarint64ToArray(varint, bytes) - bytes);
  }

  std::string text_;
};

std::string EncodeLeafSpec(const kubebeast::LeafSpec& leaf) {
  Message message;
  message.Bytes(1, leaf.path);
  message.Varint(2, static_cast<std::uint64_t>(leaf.dtype));
  message.Packed(3, {leaf.shape.begin(), leaf.shape.end()});
  message.Varint(4, leaf.frame_stack);
  message.Varint(5, static_cast<std::uint64_t>(leaf.num_categories));
  message.Varint(6, leaf.bounded ? 1 : 0);
  message.Varint(7, leaf.is_action_mask ? 1 : 0);
  return message.text();
}

grpc::Slice Request(std::uint32_t payload, const Message& message) {
  Message request;
  request.Element(payload, message.text());
  return grpc::Slice(request.text());
}

// Returns the first characters of UTF-8 text: continuation bytes are 0b10xxxxxx.
std::string_view FirstCharacters(std::string_view text, std::size_t count) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (count-- == 0) return text.substr(0, i);
  }
  return text;
}

std::size_t FieldSize(std::size_t payload) { return 1 + CodedOutputStream::VarintSize64(payload) + payload; }

std::uint8_t* WriteBytes(std::uint32_t field, const void* data, std::size_t size, std::uint8_t* out) {
  out = CodedOutputStream::WriteTagToArray(Tag(field, WireType::kBytes), out);
  out = CodedOutputStream::WriteVarint64ToArray(size, out);
  if (data == nullptr || size == 0) return out;
  std::memcpy(out, data, size);
  return out + size;
}

template <typename T>
std::string_view Text(const std::vector<T>& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T)};
}

float ToFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace

grpc::Slice EncodeHello(const Settings& settings) {
  Message hello;
  hello.Varint(1, kProtocolVersion);
  hello.Bytes(2, settings.env_server_id);
  hello.Bytes(3, settings.instance_id);
  hello.Bytes(4, settings.spec.env_id);
  hello.Varint(5, settings.num_envs);
  for (const auto& leaf : settings.spec.observation) hello.Element(6, EncodeLeafSpec(leaf));
  for (const auto& leaf : settings.spec.action) hello.Element(7, EncodeLeafSpec(leaf));
  std::vector<std::uint64_t> offered;
  offered.reserve(settings.offered.size());
  for (const Compression offer : settings.offered) offered.push_back(static_cast<std::uint64_t>(offer));
  hello.Packed(8, offered);
  hello.Varint(9, kProtocolMinor);
  hello.Bytes(10, settings.spec.env_config);
  hello.Bytes(11, settings.run);
  return Request(kHello, hello);
}

grpc::Slice EncodeBye(std::uint8_t reason, std::string_view detail) {
  Message bye;
  bye.Varint(1, reason);
  bye.Bytes(2, FirstCharacters(detail, kMaxDetailCharacters));
  return Request(kBye, bye);
}

ObservationsEncoder::ObservationsEncoder(const std::vector<kubebeast::LeafSpec>& leaves,
                                         std::vector<Compression> compression, std::uint64_t learner_minor,
                                         std::vector<std::string> log_info)
    : leaves_(leaves),
      compression_(std::move(compression)),
      knows_info_(learner_minor >= kInfoMinor),
      log_info_(std::move(log_info)),
      payloads_(leaves.size()),
      blocks_(leaves.size()) {}

grpc::Slice ObservationsEncoder::Encode(std::uint64_t step, const StepRows& rows, std::uint64_t env_us) {
  const std::string flags = EncodeFlags(step, rows, env_us);
  const auto num_first = static_cast<std::size_t>(std::count(rows.is_first.begin(), rows.is_first.end(), 1));
  std::size_t size = flags.size();
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    payloads_[i] = Prepare(i, rows, num_first);
    size += FieldSize(payloads_[i].size);
  }

  grpc::Slice slice(FieldSize(size));
  // The slice has no other owner until this function returns.
  auto* out = const_cast<std::uint8_t*>(slice.begin());
  out = WriteBytes(kObservations, nullptr, size, out);
  out = std::copy(flags.begin(), flags.end(), out);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    out = WriteBytes(2, payloads_[i].data, payloads_[i].size, out);
    if (payloads_[i].data == nullptr) out = Gather(i, rows, out);
  }
  return slice;
}

std::string ObservationsEncoder::EncodeFlags(std::uint64_t step, const StepRows& rows, std::uint64_t env_us) const {
  Message message;
  message.Varint(1, step);
  message.Bytes(3, Text(rows.rewards));
  message.Bytes(4, Text(rows.terminated));
  message.Bytes(5, Text(rows.truncated));
  message.Bytes(6, Text(rows.is_first));
  for (const Episode& episode : rows.episodes) message.Element(7, EncodeEpisode(episode));
  if (std::any_of(rows.interrupted.begin(), rows.interrupted.end(), [](std::uint8_t flag) { return flag != 0; })) {
    message.Bytes(8, Text(rows.interrupted));
  }
  message.Varint(9, env_us);
  return message.text();
}

std::string ObservationsEncoder::EncodeEpisode(const Episode& episode) const {
  const float rounded = ToFloat(episode.episode_return);
  Message message;
  message.Varint(1, episode.env);
  message.Float(2, rounded);
  message.Varint(3, episode.length);
  if (!knows_info_) return message.text();
  if (rounded != episode.episode_return) message.Double(5, episode.episode_return);
  std::vector<double> values(log_info_.size(), std::numeric_limits<double>::quiet_NaN());
  bool any = false;
  for (std::size_t i = 0; i < log_info_.size(); ++i) {
    const auto found = episode.info.find(log_info_[i]);
    if (found == episode.info.end()) continue;
    values[i] = found->second;
    any = true;
  }
  if (any) message.Bytes(4, Text(values));
  return message.text();
}

ObservationsEncoder::Payload ObservationsEncoder::Prepare(std::size_t leaf, const StepRows& rows,
                                                          std::size_t num_first) {
  const std::vector<std::uint8_t>& frames = rows.frames[leaf];
  const std::size_t stacked = (leaves_[leaf].frame_stack - 1) * num_first * leaves_[leaf].frame_bytes();
  const std::size_t size = frames.size() + stacked;
  if (compression_[leaf] != Compression::kLz4) return {stacked == 0 ? frames.data() : nullptr, size};

  const std::uint8_t* source = frames.data();
  if (stacked > 0) {
    stacks_.resize(size);
    Gather(leaf, rows, stacks_.data());
    source = stacks_.data();
  }
  std::vector<std::uint8_t>& block = blocks_[leaf];
  block.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(size))));
  const int written = LZ4_compress_default(reinterpret_cast<const char*>(source), reinterpret_cast<char*>(block.data()),
                                           static_cast<int>(size), static_cast<int>(block.size()));
  return {block.data(), static_cast<std::size_t>(written)};
}

// Gathers the frames of every row, oldest first: a first frame fills its stack. Returns the end.
std::uint8_t* ObservationsEncoder::Gather(std::size_t leaf, const StepRows& rows, std::uint8_t* to) const {
  const std::size_t bytes = leaves_[leaf].frame_bytes();
  if (bytes == 0) return to;
  for (std::size_t env = 0; env < rows.is_first.size(); ++env) {
    const std::size_t count = rows.is_first[env] != 0 ? leaves_[leaf].frame_stack : 1;
    for (std::size_t i = 0; i < count; ++i, to += bytes) std::memcpy(to, rows.frames[leaf].data() + env * bytes, bytes);
  }
  return to;
}

}  // namespace kubebeast::client
