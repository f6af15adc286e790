// Fuzz target: the messages of one stream through the codec. The generated parser is the oracle for accepted messages.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "contract_rows.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "peer.h"
#include "script.h"
#include "spoil.h"
#include "wire/handshake_codec.h"
#include "wire/wire_codec.h"

namespace kubebeast::fuzz {
namespace {

// With these limits a peer takes little memory, no matter which messages it sends.
constexpr WireLimits kLimits{
    .max_message_bytes = std::size_t{64} << 10U, .max_envs_per_stream = 16, .num_info = kNumInfo};
constexpr std::size_t kMaxMessages = 16;
constexpr int kSliceSizes[] = {-1, 1, 7, 64};

using Rows = std::shared_ptr<const ObservationRows>;

bool IsFloat(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

LeafSpec MakeLeafSpec(Script& script, std::size_t index) {
  LeafSpec leaf;
  leaf.path = std::to_string(index);
  leaf.dtype = static_cast<DType>(1 + script.Below(8));
  leaf.shape.resize(script.Below(3));
  std::fill(leaf.shape.begin(), leaf.shape.end(), static_cast<std::int64_t>(script.Below(4)));
  leaf.frame_stack = 1 + static_cast<std::uint32_t>(script.Below(4));
  if (!IsFloat(leaf.dtype))
    leaf.num_categories = static_cast<std::int64_t>(script.Below(leaf.dtype == DType::kBool ? 3 : 8));
  return leaf;
}

v1::ActRequest MakeHello(Script& script) {
  EnvSpec spec{.env_id = "Fuzz-v0"};
  std::vector<Compression> offered;
  const std::size_t num_leaves = 1 + script.Below(3);
  for (std::size_t i = 0; i < num_leaves; ++i) {
    spec.observation.push_back(MakeLeafSpec(script, i));
    spec.action.push_back(spec.observation.back());
    spec.action.back().frame_stack = 1;
    spec.action.back().bounded = IsFloat(spec.action.back().dtype) && script.Below(2) == 1;
    LeafSpec& leaf = spec.observation.back();
    leaf.is_action_mask = i == 0 && leaf.dtype == DType::kBool && leaf.frame_stack == 1;
    offered.push_back(static_cast<Compression>(1 + script.Below(2)));
  }
  const auto num_envs = 1 + static_cast<std::uint32_t>(script.Below(4));
  return fuzz::MakeHello(spec, num_envs, offered, num_envs > 1 && script.Below(2) == 0);
}

bool Equal(const std::vector<std::uint8_t>& flags, const std::string& bytes) {
  if (bytes.empty()) return std::count(flags.begin(), flags.end(), 0) == static_cast<std::ptrdiff_t>(flags.size());
  return flags.size() == bytes.size() && std::memcmp(flags.data(), bytes.data(), bytes.size()) == 0;
}

// Checks that numbers are finite as float32.
template <typename Float>
void CheckFinite(const std::string& elements) {
  for (std::size_t i = 0; i < elements.size(); i += sizeof(Float)) {
    Float value = 0;
    std::memcpy(&value, elements.data() + i, sizeof(Float));
    Require(std::fabs(static_cast<double>(value)) < 0x1.ffffffp127, "every number is finite as float32");
  }
}

// Checks categories and bools; they are read without sign, so that a negative one is large.
void CheckRange(const LeafSpec& spec, const std::string& elements) {
  if (spec.dtype == DType::kFloat32) return CheckFinite<float>(elements);
  if (spec.dtype == DType::kFloat64) return CheckFinite<double>(elements);
  const std::uint64_t bound = spec.num_categories > 0 ? static_cast<std::uint64_t>(spec.num_categories) : 2;
  if (spec.num_categories == 0 && spec.dtype != DType::kBool) return;
  for (std::size_t i = 0; i < elements.size(); i += ItemSize(spec.dtype)) {
    std::uint64_t value = 0;
    std::memcpy(&value, elements.data() + i, ItemSize(spec.dtype));
    Require(value < bound, "every element is in range");
  }
}

void CheckLeaf(const ObservationRows& rows, std::size_t index, const Peer& peer, const v1::Observations& oracle) {
  const LeafSpec& spec = peer.hello().spec.observation[index];
  const std::size_t size = peer.LeafBytes(spec, oracle.is_first());
  std::string frames;
  for (std::uint32_t env = 0; env < rows.num_envs(); ++env) {
    const std::size_t num_frames = rows.is_first[env] != 0 ? spec.frame_stack : 1;
    frames.append(reinterpret_cast<const char*>(rows.frames(index, env)), num_frames * spec.frame_bytes());
  }
  Require(frames == Plain(oracle.leaves(static_cast<int>(index)), peer.hello().compression[index], size),
          "the frames are those of the message");
  CheckRange(spec, frames);
}

// Checks the rewards; Peer::Advance requires the same of the flags.
void CheckReward(const ObservationRows& rows, std::uint32_t env, const Peer& peer, const v1::Observations& oracle) {
  Require(std::isfinite(rows.rewards[env]), "rewards are finite");
  const ContractRow row = RowOf(peer.is_due(env), peer.hello(), FlagsOf(oracle, env));
  Require(row.rewarded || rows.rewards[env] == 0, "only rows that may be are rewarded");
}

void CheckRows(const ObservationRows& rows, const Peer& peer, const v1::Observations& oracle) {
  Require(rows.num_envs() == peer.hello().num_envs, "every environment has a row");
  Require(rows.step == peer.next_step() && rows.step == oracle.step(), "steps are consecutive");
  Require(oracle.rewards().size() == rows.rewards.size() * sizeof(float) &&
              std::memcmp(rows.rewards.data(), oracle.rewards().data(), oracle.rewards().size()) == 0,
          "the rewards are those of the message");
  Require(Equal(rows.terminated, oracle.terminated()) && Equal(rows.truncated, oracle.truncated()) &&
              Equal(rows.is_first, oracle.is_first()) && Equal(rows.interrupted, oracle.interrupted()),
          "the flags are those of the message");
  Require(oracle.waiting().empty() || !peer.hello().takes_turns || Equal(rows.waiting, oracle.waiting()),
          "the rows that wait are those of the message");
  Require(rows.episodes.size() == static_cast<std::size_t>(oracle.episodes_size()), "every episode is reported");
  for (const EpisodeEnd& episode : rows.episodes)
    Require(episode.env < rows.num_envs() && (episode.info.empty() || episode.info.size() == kNumInfo),
            "episodes have an environment, and a number for each key or none");
  for (std::uint32_t env = 0; env < rows.num_envs(); ++env) CheckReward(rows, env, peer, oracle);
  for (std::size_t i = 0; i < peer.hello().spec.observation.size(); ++i) CheckLeaf(rows, i, peer, oracle);
}

void CheckActions(const StreamCodec& codec, const Peer& peer) {
  const std::vector<LeafSpec>& leaves = peer.hello().spec.action;
  static const std::vector<std::uint8_t> zeros(kLimits.max_message_bytes);
  v1::ActResponse response;
  const std::vector<const std::uint8_t*> actions(leaves.size(), zeros.data());
  Require(response.ParseFromString(codec.EncodeActions(peer.next_step(), actions)) && response.has_actions(),
          "the generated parser reads the actions");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Require(response.actions().leaves(static_cast<int>(i)).size() == peer.hello().num_envs * leaves[i].row_bytes(),
            "every environment has an action");
  }
}

// Valid bytes must be accepted; invalid ones must leave the stream in its state.
void Exchange(StreamCodec& codec, Peer& peer, Script& script, int slice_size) {
  const v1::ActRequest valid = script.Below(16) == 1 ? MakeBye(script) : peer.NextStep(script);
  const std::string bytes = Spoil(valid, script);
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  const absl::StatusOr<Request> request = codec.Decode(&input, bytes.size());
  if (!request.ok()) {
    Require(request.status().code() == absl::StatusCode::kInvalidArgument, "a refusal is INVALID_ARGUMENT");
    Require(bytes.size() > kLimits.max_message_bytes || bytes != valid.SerializeAsString(), "valid bytes are accepted");
  } else if (const Rows* rows = std::get_if<Rows>(&*request)) {
    // Only lengths of more than five bytes are read by the codec and not by the generated parser.
    v1::ActRequest oracle;
    if (!oracle.ParseFromString(bytes)) return script.Stop();
    CheckRows(**rows, peer, oracle.observations());
    CheckActions(codec, peer);
    peer.Advance(oracle.observations());
  }
  Require(codec.next_step() == peer.next_step(), "only accepted steps count");
}

void Run(Script script) {
  const int slice_size = kSliceSizes[script.Below(std::size(kSliceSizes))];
  const v1::ActRequest valid = MakeHello(script);
  const std::string bytes = Spoil(valid, script);
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), slice_size);
  const absl::StatusOr<Hello> hello = DecodeHello(&input, bytes.size(), kLimits);
  if (!hello.ok()) return Require(bytes != valid.SerializeAsString(), "a valid Hello is accepted");
  StreamCodec codec(*hello, kLimits);
  Peer peer(*hello);
  for (std::size_t i = 0; i < kMaxMessages && !script.done(); ++i) Exchange(codec, peer, script, slice_size);
}

}  // namespace
}  // namespace kubebeast::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  kubebeast::fuzz::SilenceProtobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kubebeast::fuzz::Run({data, size});
  return 0;
}
