// An env-server for tests: every value that it sends follows from environment and step.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kubebeast_protos/v1/actor_pool.grpc.pb.h"
#include "testing/rollout_test_util.h"
#include "testing/test_patience.h"
#include "wire/protocol.h"

namespace kubebeast {

// Messages of an env-server with environments first_env, first_env + 1, ...
class TestMessages {
 public:
  explicit TestMessages(std::uint32_t num_envs, std::uint32_t first_env = 0)
      : num_envs_(num_envs), first_env_(first_env) {}

  v1::ActRequest HelloMessage() const {
    v1::ActRequest request;
    v1::Hello& hello = *request.mutable_hello();
    hello.set_protocol_version(kProtocolVersion);
    hello.set_env_server_id("pod-" + std::to_string(first_env_));
    hello.set_instance_id("1");
    hello.set_env_id("Counter-v0");
    hello.set_num_envs(num_envs_);
    hello.set_protocol_minor(kProtocolMinor);
    const EnvSpec spec = RolloutSpec();
    for (const LeafSpec& leaf : spec.observation) *hello.add_observation() = ToProto(leaf);
    for (const LeafSpec& leaf : spec.action) *hello.add_action() = ToProto(leaf);
    return request;
  }

  v1::ActRequest StepMessage(std::uint64_t step) const {
    StepFlags flags;
    v1::ActRequest request;
    v1::Observations& message = *request.mutable_observations();
    for (std::uint32_t env = first_env_; env < first_env_ + num_envs_; ++env) {
      const auto t = static_cast<std::int64_t>(step);
      flags.is_first.push_back(IsFirst(env, t));
      flags.terminated.push_back(IsTerminated(env, t));
      flags.truncated.push_back(IsFinal(env, t) && !IsTerminated(env, t));
      if (!IsFinal(env, t)) continue;
      v1::Episode& episode = *message.add_episodes();
      episode.set_env(env - first_env_);
      episode.set_episode_return(static_cast<float>(FrameValue(env, t)));
      episode.set_length(7);
      for (int i = 0; i < num_info_; ++i) episode.add_info(i == 0 ? 1.0 : std::nan(""));
    }
    const auto rows = MakeObservation(step, flags, first_env_);
    const std::size_t last = num_envs_ - 1;
    message.set_step(step);
    message.add_leaves(rows->leaves[0].data.get(), rows->leaves[0].offsets[last] + (rows->is_first[last] ? 12 : 4));
    message.add_leaves(rows->leaves[1].data.get(), rows->leaves[1].offsets[last] + 8);
    message.set_rewards(rows->rewards.data(), rows->rewards.size() * sizeof(float));
    message.set_terminated(rows->terminated.data(), num_envs_);
    message.set_truncated(rows->truncated.data(), num_envs_);
    message.set_is_first(rows->is_first.data(), num_envs_);
    return request;
  }

 protected:
  const std::uint32_t num_envs_;
  const std::uint32_t first_env_;
  int num_info_ = 0;  // keys in Welcome.log_info

 private:
  static v1::LeafSpec ToProto(const LeafSpec& leaf) {
    v1::LeafSpec proto;
    proto.set_path(leaf.path);
    proto.set_dtype(static_cast<v1::DType>(leaf.dtype));
    for (const std::int64_t dim : leaf.shape) proto.add_shape(dim);
    proto.set_frame_stack(leaf.frame_stack);
    return proto;
  }
};

// One stream of an env-server that dials; a call that waits for the pool fails after kPatience.
class TestActor : public TestMessages {
 public:
  TestActor(const std::string& address, std::uint32_t num_envs, std::uint32_t first_env = 0,
            grpc_compression_algorithm compression = GRPC_COMPRESS_NONE, const std::string& token = "")
      : TestMessages(num_envs, first_env),
        stub_(v1::ActorPool::NewStub(
            grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Own(compression)))),
        stream_(stub_->Act(Patient(&context_, token))) {}

  ~TestActor() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    stream_->Finish();
  }

  bool Send(const v1::ActRequest& request) { return stream_->Write(request); }
  std::optional<v1::ActResponse> Read() {
    v1::ActResponse response;
    if (!stream_->Read(&response)) return std::nullopt;
    return response;
  }

  // Sends the Hello and blocks until the Welcome is there.
  bool Join() {
    Send(HelloMessage());
    const auto response = Read();
    if (!response.has_value() || !response->has_welcome()) return false;
    num_info_ = response->welcome().log_info_size();
    Take(response->welcome().episode_options());
    return true;
  }

  // Steps the environments once, blocks until the actions are there, and checks their values.
  bool Step() {
    if (!Send(StepMessage(step_))) return false;
    return ReadActions();
  }

  bool ReadActions() {
    const auto response = Read();
    if (!response.has_value()) return false;
    EXPECT_EQ(response->actions().step(), step_);
    EXPECT_EQ(response->actions().leaves_size(), 2);
    for (std::uint32_t env = 0; env < num_envs_; ++env) {
      std::int64_t choice = 0;
      std::memcpy(&choice, response->actions().leaves(0).data() + env * sizeof(choice), sizeof(choice));
      EXPECT_EQ(choice, ChoiceFor(FrameValue(first_env_ + env, static_cast<std::int64_t>(step_))));
    }
    Take(response->actions().episode_options());
    ++step_;
    return true;
  }

  // Returns the newest options of an environment; "" without any.
  const std::string& options(std::uint32_t env) { return options_[env]; }

  void SendBye(v1::Bye::Reason reason) {
    v1::ActRequest request;
    request.mutable_bye()->set_reason(reason);
    Send(request);
  }

  // Half-closes, reads to the end and returns the stream's status.
  grpc::Status Finish() {
    stream_->WritesDone();
    return Status();
  }
  // Reads to the end and returns the status with which the learner ended the stream.
  grpc::Status Status() {
    while (Read().has_value()) {
    }
    return std::exchange(stream_, nullptr)->Finish();
  }
  // Disconnects without a Bye.
  void Vanish() {
    context_.TryCancel();
    std::exchange(stream_, nullptr)->Finish();
  }

 private:
  // Dials again if the connection fails: gRPC 1.51 takes a stale errno for a refusal once in some 10 000 connections.
  static grpc::ClientContext* Patient(grpc::ClientContext* context, const std::string& token) {
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    context->set_wait_for_ready(true);
    context->set_deadline(std::chrono::system_clock::now() + kPatience);
    return context;
  }

  // Returns arguments for a separate connection: channels with equal arguments share one.
  static grpc::ChannelArguments Own(grpc_compression_algorithm compression) {
    grpc::ChannelArguments arguments;
    arguments.SetCompressionAlgorithm(compression);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }

  void Take(const google::protobuf::RepeatedPtrField<v1::EpisodeOptions>& entries) {
    for (const v1::EpisodeOptions& entry : entries) options_[entry.env()] = entry.options();
  }

  std::uint64_t step_ = 0;
  std::map<std::uint32_t, std::string> options_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::ActorPool::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ActRequest, v1::ActResponse>> stream_;
};

}  // namespace kubebeast
