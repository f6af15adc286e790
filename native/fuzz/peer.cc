#include "peer.h"

#include <lz4.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "contract_rows.h"

namespace kubebeast::fuzz {
namespace {

v1::LeafSpec ToProto(const LeafSpec& leaf) {
  v1::LeafSpec message;
  message.set_path(leaf.path);
  message.set_dtype(static_cast<v1::DType>(leaf.dtype));
  for (const std::int64_t dim : leaf.shape) message.add_shape(dim);
  message.set_frame_stack(leaf.frame_stack);
  message.set_num_categories(leaf.num_categories);
  message.set_bounded(leaf.bounded);
  if (leaf.is_action_mask) message.set_role(v1::ROLE_ACTION_MASK);
  return message;
}

std::string Lz4(const std::string& bytes) {
  std::string block(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes.size()))), '\0');
  block.resize(static_cast<std::size_t>(LZ4_compress_default(bytes.data(), block.data(), static_cast<int>(bytes.size()),
                                                             static_cast<int>(block.size()))));
  return block;
}

}  // namespace

v1::ActRequest MakeHello(const EnvSpec& spec, std::uint32_t num_envs, const std::vector<Compression>& offered,
                         bool takes_turns) {
  v1::ActRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_protocol_minor(kProtocolMinor);
  hello.set_env_server_id("pod-0");
  hello.set_instance_id("0");
  hello.set_env_id(spec.env_id);
  hello.set_num_envs(num_envs);
  hello.set_env_config(spec.env_config);
  if (takes_turns) hello.set_num_agents(num_envs % 2 == 0 ? 2 : num_envs);
  hello.set_takes_turns(takes_turns);
  for (const LeafSpec& leaf : spec.observation) *hello.add_observation() = ToProto(leaf);
  for (const LeafSpec& leaf : spec.action) *hello.add_action() = ToProto(leaf);
  for (const Compression entry : offered) hello.add_offered_compression(static_cast<v1::Compression>(entry));
  return request;
}

v1::ActRequest MakeBye(Script& script) {
  v1::ActRequest request;
  request.mutable_bye()->set_reason(static_cast<v1::Bye::Reason>(script.Below(4)));
  request.mutable_bye()->set_detail("planned");
  return request;
}

std::string Plain(const std::string& wire_bytes, Compression compression, std::size_t size) {
  if (compression == Compression::kNone) return wire_bytes;
  std::string bytes(size, '\0');
  const int written =
      LZ4_decompress_safe(wire_bytes.data(), bytes.data(), static_cast<int>(wire_bytes.size()), static_cast<int>(size));
  Require(written == static_cast<int>(size), "an accepted LZ4 block holds its leaf");
  return bytes;
}

Peer::Peer(Hello hello) : hello_(std::move(hello)), due_(hello_.num_envs, true) {}

v1::ActRequest Peer::NextStep(Script& script) const {
  const std::size_t num_envs = hello_.num_envs;
  v1::ActRequest request;
  v1::Observations& step = *request.mutable_observations();
  std::vector<float> rewards(num_envs);
  std::string is_first(num_envs, '\0');
  std::string terminated(num_envs, '\0');
  std::string truncated(num_envs, '\0');
  std::string interrupted(num_envs, '\0');
  std::string waiting(num_envs, '\0');
  bool has_turn = true;
  for (std::size_t env = 0; env < num_envs; ++env) {
    const std::vector<ContractRow> options = RowsWhen(due_[env], hello_);
    if (env % hello_.num_agents == 0) has_turn = !hello_.takes_turns;
    const bool is_last_chance = (env + 1) % hello_.num_agents == 0 && !has_turn;
    const std::size_t course = options.size() == 1 || is_last_chance ? 0 : script.Below(16);
    const ContractRow& row = options[course < options.size() ? course : 0];
    is_first[env] = static_cast<char>(row.flags.is_first);
    terminated[env] = static_cast<char>(row.flags.terminated);
    truncated[env] = static_cast<char>(row.flags.truncated);
    interrupted[env] = static_cast<char>(row.flags.interrupted);
    waiting[env] = static_cast<char>(row.flags.waiting);
    has_turn = has_turn || !(row.flags.waiting || (row.flags.is_first && row.flags.interrupted));
    if (row.rewarded) rewards[env] = static_cast<float>(course);
    if (!row.flags.terminated) continue;
    v1::Episode& episode = *step.add_episodes();
    episode.set_env(static_cast<std::uint32_t>(env));
    episode.set_episode_return(-1.5F);
    episode.set_length(next_step_);
    if (course % 2 == 0) continue;
    for (std::size_t i = 0; i < kNumInfo; ++i) episode.add_info(i == 0 ? 0.5 : std::nan(""));
  }
  step.set_step(next_step_);
  for (std::size_t i = 0; i < hello_.spec.observation.size(); ++i) {
    const LeafSpec& leaf = hello_.spec.observation[i];
    std::string bytes = MakeLeaf(leaf, LeafBytes(leaf, is_first));
    *step.add_leaves() = hello_.compression[i] == Compression::kLz4 ? Lz4(bytes) : std::move(bytes);
  }
  step.set_rewards(rewards.data(), num_envs * sizeof(float));
  step.set_terminated(std::move(terminated));
  step.set_truncated(std::move(truncated));
  step.set_is_first(std::move(is_first));
  step.set_interrupted(std::move(interrupted));
  if (hello_.takes_turns) step.set_waiting(std::move(waiting));
  return request;
}

std::size_t Peer::LeafBytes(const LeafSpec& leaf, const std::string& is_first) const {
  std::size_t num_frames = 0;
  for (const char first : is_first) num_frames += first != 0 ? leaf.frame_stack : 1;
  return num_frames * leaf.frame_bytes();
}

// Returns elements that are in range and differ from their neighbors and from those of other steps.
std::string Peer::MakeLeaf(const LeafSpec& leaf, std::size_t size) const {
  std::string bytes(size, '\0');
  const std::size_t item_size = ItemSize(leaf.dtype);
  const std::int64_t bound = leaf.dtype == DType::kBool && leaf.num_categories == 0 ? 2 : leaf.num_categories;
  for (std::size_t i = 0; i < size; i += item_size) {
    std::uint64_t value = 31 * next_step_ + i;
    value = bound > 0 ? value % static_cast<std::uint64_t>(bound) : value % 100;
    std::memcpy(bytes.data() + i, &value, item_size);
  }
  return bytes;
}

void Peer::Advance(const v1::Observations& step) {
  ++next_step_;
  for (std::size_t env = 0; env < due_.size(); ++env) {
    due_[env] = RowOf(due_[env], hello_, FlagsOf(step, env)).due_after;
  }
}

}  // namespace kubebeast::fuzz
