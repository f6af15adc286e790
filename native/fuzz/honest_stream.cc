#include "honest_stream.h"

#include <cstring>
#include <utility>

namespace kubebeast::fuzz {
namespace {

constexpr std::size_t kSliceSize = 32;

// Courses of two environments that contain every row of the contract, repeated: each number is an index of the allowed
// rows; above their number, the first (Peer::NextStep).
constexpr std::uint8_t kCourses[] = {7, 8, 3, 2, 0, 1, 7, 4, 1, 7, 2, 3};

Hello ToHello(const EnvSpec& spec, std::uint32_t num_envs) {
  return {.env_server_id = "honest",
          .instance_id = "0",
          .num_envs = num_envs,
          .spec = spec,
          .compression = std::vector<Compression>(spec.observation.size(), Compression::kNone),
          .protocol_minor = kProtocolMinor};
}

}  // namespace

HonestStream::HonestStream(std::shared_ptr<PoolContext> pool, const EnvSpec& spec, std::uint32_t num_envs)
    : transport_(std::move(pool)), peer_(ToHello(spec, num_envs)), stacks_(num_envs) {
  transport_.Deliver(MakeHello(spec, num_envs, peer_.hello().compression).SerializeAsString(), kSliceSize);
  Require(transport_.stream().accepted(), "an honest Hello is accepted");
}

void HonestStream::Continue(const Learner& learner) {
  Require(!transport_.finished(), "nobody else ends an honest stream");
  if (const auto reply = transport_.CompleteWrite(true)) {
    v1::ActResponse response;
    Require(response.ParseFromString(*reply), "a reply is a message");
    if (!std::exchange(welcome_, true)) {
      Require(response.has_welcome(), "the first reply is a Welcome");
    } else {
      CheckActions(response, learner);
    }
    its_turn_ = true;
  }
  if (std::exchange(its_turn_, false)) Step();
  Require(!transport_.finished(), "an honest step is accepted");
}

bool HonestStream::CheckRows(const InferenceBatch& batch) const {
  const std::vector<std::int32_t>& slots = transport_.stream().slots();
  const std::size_t row_bytes = peer_.hello().spec.observation[0].row_bytes();
  bool found = false;
  for (std::size_t row = 0; row < batch.num_rows(); ++row) {
    if (batch.slots.as<std::int32_t>()[row] != slots[0]) continue;
    found = true;
    for (std::size_t env = 0; env < slots.size(); ++env) {
      const std::uint8_t* const seen = batch.observation[0].data.get() + (row + env) * row_bytes;
      Require(std::memcmp(seen, stacks_[env].data(), row_bytes) == 0, "the model sees the frames that were sent");
    }
  }
  return found;
}

void HonestStream::Step() {
  Script courses(kCourses + peer_.next_step() % 11, 2);
  const v1::ActRequest request = peer_.NextStep(courses);
  const LeafSpec& leaf = peer_.hello().spec.observation[0];
  const v1::Observations& step = request.observations();
  const char* frames = step.leaves(0).data();
  for (std::size_t env = 0; env < stacks_.size(); ++env) {
    const std::size_t size = step.is_first()[env] != 0 ? leaf.row_bytes() : leaf.frame_bytes();
    stacks_[env].append(frames, size);
    stacks_[env].erase(0, stacks_[env].size() - leaf.row_bytes());
    frames += size;
  }
  transport_.Deliver(request.SerializeAsString(), kSliceSize);
  peer_.Advance(step);
}

void HonestStream::CheckActions(const v1::ActResponse& response, const Learner& learner) {
  Require(response.has_actions(), "a step is answered by actions");
  Require(response.actions().step() == num_answers_, "actions carry the step of their observations");
  const std::vector<std::int32_t>& slots = transport_.stream().slots();
  for (std::size_t env = 0; env < slots.size(); ++env) {
    std::int64_t action = 0;
    std::memcpy(&action, response.actions().leaves(0).data() + env * sizeof(action), sizeof(action));
    Require(action == learner.action(slots[env]), "the actions are the model's answer");
  }
  ++num_answers_;
}

}  // namespace kubebeast::fuzz
