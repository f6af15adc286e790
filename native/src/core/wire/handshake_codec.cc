#include "wire/handshake_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "wire/wire_reader.h"

namespace kubebeast {
namespace {

// 256 leaves with the longest paths take a third of this. Repeated empty leaves cost the parser 40 times their bytes.
constexpr std::size_t kMaxHelloBytes = std::size_t{256} << 10U;
// Bytes of a row besides its leaves: reward, flags, and the episode that it may end.
constexpr std::uint64_t kRowOverheadBytes = 64;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("hello.", parts...));
}

// Checks a text from the peer: ids become metric labels and parts of log lines, env_config a part of log lines.
absl::Status CheckText(absl::string_view name, const std::string& text, std::size_t min_characters,
                       std::size_t max_characters) {
  if (text.size() < min_characters || text.size() > max_characters) {
    return Invalid(name, ": ", text.size(), " characters, expected ", min_characters, " to ", max_characters);
  }
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isprint)) {
    return Invalid(name, ": holds a character that is not printable ASCII");
  }
  return absl::OkStatus();
}

// Converts without checks; ValidateEnvSpec checks the values.
std::vector<LeafSpec> ToLeafSpecs(const google::protobuf::RepeatedPtrField<v1::LeafSpec>& messages) {
  std::vector<LeafSpec> leaves;
  leaves.reserve(static_cast<std::size_t>(messages.size()));
  for (const v1::LeafSpec& message : messages) {
    LeafSpec& leaf = leaves.emplace_back();
    leaf.path = message.path();
    // A number that does not fit must not wrap around to a valid one: 0 is invalid.
    leaf.dtype = static_cast<DType>(v1::DType_IsValid(message.dtype()) ? message.dtype() : v1::DTYPE_INVALID);
    leaf.shape.assign(message.shape().begin(), message.shape().end());
    leaf.frame_stack = std::max(message.frame_stack(), 1U);
    leaf.num_categories = message.num_categories();
    leaf.bounded = message.bounded();
    leaf.is_action_mask = message.role() == v1::ROLE_ACTION_MASK;
  }
  return leaves;
}

absl::StatusOr<std::vector<Compression>> ChooseCompression(const v1::Hello& message) {
  const int num_leaves = message.observation_size();
  if (message.offered_compression_size() > num_leaves) {
    return Invalid("offered_compression: ", message.offered_compression_size(), " entries for ", num_leaves, " leaves");
  }
  std::vector<Compression> chosen(static_cast<std::size_t>(num_leaves), Compression::kNone);
  for (int i = 0; i < message.offered_compression_size(); ++i) {
    if (message.offered_compression(i) == v1::COMPRESSION_LZ4) chosen[static_cast<std::size_t>(i)] = Compression::kLz4;
  }
  return chosen;
}

// One step of the stream and its answer, uncompressed and with whole stacks, must fit into a message: this bounds the
// memory that a peer can request by the size of its messages.
absl::Status CheckSpec(const EnvSpec& spec, std::uint32_t num_envs, std::size_t max_message_bytes) {
  if (const absl::Status status = ValidateEnvSpec(spec, max_message_bytes / num_envs); !status.ok()) {
    return Invalid(status.message());
  }
  std::size_t row_bytes = 0;
  for (const LeafSpec& leaf : spec.observation) row_bytes += leaf.row_bytes();
  for (const LeafSpec& leaf : spec.action) row_bytes += leaf.row_bytes();
  if (row_bytes <= max_message_bytes / num_envs) return absl::OkStatus();
  return Invalid("num_envs: ", num_envs, " rows of ", row_bytes, " bytes are more than ", max_message_bytes,
                 " bytes a message");
}

absl::Status CheckFields(const v1::Hello& message, const WireLimits& limits) {
  if (message.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("hello.protocol_version: ", message.protocol_version(),
                                                      ", the learner speaks ", kProtocolVersion));
  }
  absl::Status status = CheckText("env_server_id", message.env_server_id(), 1, kMaxIdCharacters);
  if (status.ok()) status = CheckText("instance_id", message.instance_id(), 1, kMaxIdCharacters);
  if (status.ok()) status = CheckText("env_id", message.env_id(), 0, kMaxIdCharacters);
  // The reader of env_config checks that it is JSON.
  if (status.ok()) status = CheckText("env_config", message.env_config(), 0, kMaxEnvConfigCharacters);
  if (!status.ok()) return status;
  if (message.run().size() > kMaxRunBytes) {
    return Invalid("run: ", message.run().size(), " bytes, expected at most ", kMaxRunBytes);
  }
  if (message.num_envs() == 0 || message.num_envs() > limits.max_envs_per_stream) {
    return Invalid("num_envs: ", message.num_envs(), ", expected 1 to ", limits.max_envs_per_stream);
  }
  if (message.num_agents() > 1 && message.num_envs() % message.num_agents() != 0) {
    return Invalid("num_agents: ", message.num_agents(), ", expected a divisor of num_envs, ", message.num_envs());
  }
  if (message.takes_turns() && message.num_agents() < 2) {
    return Invalid("takes_turns: true, but num_agents is ", message.num_agents());
  }
  return absl::OkStatus();
}

// Parses from one piece of memory: after some malformed bytes the generated parser of protobuf 3.21 returns more bytes
// to a stream of small slices than it took, which aborts the process.
bool ParseContiguous(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size, v1::ActRequest* request) {
  std::string bytes;
  google::protobuf::io::CodedInputStream in(input);
  return in.ReadString(&bytes, static_cast<int>(size)) && request->ParseFromString(bytes);
}

}  // namespace

absl::StatusOr<Hello> DecodeHello(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size,
                                  const WireLimits& limits) {
  absl::Status status = CheckMessageSize(size, std::min(kMaxHelloBytes, limits.max_message_bytes));
  if (!status.ok()) return status;
  v1::ActRequest request;
  if (!ParseContiguous(input, size, &request)) return Malformed("hello");
  if (!request.has_hello()) return absl::InvalidArgumentError("message: the first one must be a hello");
  v1::Hello& message = *request.mutable_hello();
  if (status = CheckFields(message, limits); !status.ok()) return status;

  Hello hello;
  hello.env_server_id = std::move(*message.mutable_env_server_id());
  hello.instance_id = std::move(*message.mutable_instance_id());
  hello.num_envs = message.num_envs();
  hello.protocol_minor = message.protocol_minor();
  hello.run = std::move(*message.mutable_run());
  hello.num_agents = std::max(message.num_agents(), 1U);
  hello.takes_turns = message.takes_turns();
  hello.spec.env_id = std::move(*message.mutable_env_id());
  hello.spec.env_config = std::move(*message.mutable_env_config());
  hello.spec.observation = ToLeafSpecs(message.observation());
  hello.spec.action = ToLeafSpecs(message.action());
  if (status = CheckSpec(hello.spec, hello.num_envs, limits.max_message_bytes); !status.ok()) return status;
  auto compression = ChooseCompression(message);
  if (!compression.ok()) return compression.status();
  hello.compression = *std::move(compression);
  return hello;
}

absl::Status CheckRun(const Hello& hello, const std::string& run_id) {
  if (hello.run.empty() || hello.run == run_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("hello.run: the env-server serves the run \"",
                                                    absl::Utf8SafeCHexEscape(hello.run), "\", the learner trains \"",
                                                    absl::Utf8SafeCHexEscape(run_id), "\""));
}

std::uint64_t MaxStepBytes(const Hello& hello, const WireLimits& limits) {
  std::uint64_t row_bytes = kRowOverheadBytes + (limits.num_info * sizeof(double));
  for (const LeafSpec& leaf : hello.spec.observation) row_bytes += leaf.row_bytes();
  return 2 * std::min(row_bytes * hello.num_envs, std::uint64_t{limits.max_message_bytes});
}

std::string EncodeWelcome(std::string_view run_id, const std::vector<Compression>& compression,
                          const std::vector<std::string>& log_info,
                          const std::vector<EpisodeOptions>& episode_options) {
  v1::ActResponse response;
  v1::Welcome& welcome = *response.mutable_welcome();
  welcome.set_run_id(std::string(run_id));
  welcome.set_protocol_version(kProtocolVersion);
  welcome.set_protocol_minor(kProtocolMinor);
  for (const Compression entry : compression) welcome.add_compression(static_cast<v1::Compression>(entry));
  for (const std::string& key : log_info) welcome.add_log_info(key);
  for (const EpisodeOptions& entry : episode_options) {
    v1::EpisodeOptions& message = *welcome.add_episode_options();
    message.set_env(entry.env);
    message.set_options(*entry.options);
  }
  return response.SerializeAsString();
}

std::string EncodeEnd(const absl::Status& status) {
  v1::ActResponse response;
  v1::End& end = *response.mutable_end();
  end.set_code(static_cast<std::uint32_t>(status.code()));
  end.set_detail(std::string(status.message()));
  return response.SerializeAsString();
}

}  // namespace kubebeast
