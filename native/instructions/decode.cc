#include <lz4.h>

#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "operations.h"
#include "wire/wire_codec.h"

namespace kubebeast::instructions {
namespace {

constexpr std::uint32_t kEnvs = 32;

EnvSpec Spec() {
  EnvSpec spec;
  spec.observation = {{.path = "", .dtype = DType::kUint8, .shape = {84, 84}, .frame_stack = kFrameStack}};
  spec.action = {{.path = "", .dtype = DType::kInt64, .shape = {}, .num_categories = 6}};
  return spec;
}

std::string Lz4Frames(std::size_t num_frames, std::size_t step) {
  std::string frames(num_frames * kFrameBytes, '\0');
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = FrameByte(i, step);
  std::string block(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(frames.size()))), '\0');
  block.resize(static_cast<std::size_t>(LZ4_compress_default(
      frames.data(), block.data(), static_cast<int>(frames.size()), static_cast<int>(block.size()))));
  return block;
}

std::string Message(std::size_t step) {
  const bool is_first = step == 0;
  v1::ActRequest request;
  v1::Observations& message = *request.mutable_observations();
  message.set_step(step);
  message.add_leaves(Lz4Frames(kEnvs * (is_first ? kFrameStack : 1), step));
  message.set_rewards(std::string(kEnvs * sizeof(float), '\0'));
  message.set_terminated(std::string(kEnvs, '\0'));
  message.set_truncated(std::string(kEnvs, '\0'));
  message.set_is_first(std::string(kEnvs, is_first ? '\1' : '\0'));
  return request.SerializeAsString();
}

struct State {
  StreamCodec codec{{.num_envs = kEnvs, .spec = Spec(), .compression = {Compression::kLz4}}, {}};
  std::vector<std::string> messages;
  std::size_t next = 0;

  void Decode() {
    const std::string& message = messages.at(next++);
    google::protobuf::io::ArrayInputStream input(message.data(), static_cast<int>(message.size()));
    Require(codec.Decode(&input, message.size()).ok(), "decode");
  }
};

}  // namespace

Operation Decode(std::size_t times) {
  const auto state = std::make_shared<State>();
  // The opening step, of whole stacks, takes another amount of work.
  for (std::size_t step = 0; step <= times; ++step) state->messages.push_back(Message(step));
  state->Decode();
  return [state] { state->Decode(); };
}

}  // namespace kubebeast::instructions
