// A learner for tests, in this process, that plays each stream by a script, even against the contract.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kubebeast/client.h"
#include "kubebeast_protos/v1/actor_pool.grpc.pb.h"

namespace kubebeast::client {

// A time longer than any test takes: a wait of this length has failed.
inline constexpr std::chrono::seconds kPatience{60};

// The learner's end of one stream.
class FakeStream {
 public:
  FakeStream(grpc::ServerContext* context, grpc::ServerReaderWriter<v1::ActResponse, v1::ActRequest>* stream)
      : context_(context), stream_(stream) {}

  // Returns the next message, or nullopt at the end of the stream.
  std::optional<v1::ActRequest> Read() {
    v1::ActRequest request;
    if (!stream_->Read(&request)) return std::nullopt;
    return request;
  }
  void Write(const v1::ActResponse& response) { stream_->Write(response); }

  // Reads the Hello and accepts it. Returns false at the end of the stream.
  bool Welcome(std::uint32_t minor = 7, bool lz4 = false, const std::string& run_id = "run",
               const std::vector<std::string>& log_info = {}, const std::vector<std::string>& options = {}) {
    const auto request = Read();
    if (!request.has_value()) return false;
    hello_ = request->hello();
    v1::ActResponse response;
    v1::Welcome& welcome = *response.mutable_welcome();
    welcome.set_run_id(run_id);
    welcome.set_protocol_version(1);
    welcome.set_protocol_minor(minor);
    for (const std::string& key : log_info) welcome.add_log_info(key);
    for (std::size_t env = 0; env < options.size(); ++env) Add(welcome, static_cast<std::uint32_t>(env), options[env]);
    for (int i = 0; i < hello_.observation_size(); ++i) {
      const bool offered = lz4 && hello_.offered_compression(i) == v1::COMPRESSION_LZ4;
      welcome.add_compression(offered ? v1::COMPRESSION_LZ4 : v1::COMPRESSION_NONE);
    }
    Write(response);
    return true;
  }

  // Adds the options of an environment's next episode to a Welcome or to Actions.
  template <typename Message>
  static void Add(Message& message, std::uint32_t env, const std::string& options) {
    v1::EpisodeOptions& entry = *message.add_episode_options();
    entry.set_env(env);
    entry.set_options(options);
  }

  // Returns an answer to `step`: the action of environment i is choice + i.
  v1::ActResponse Actions(std::uint64_t step, std::int64_t choice = 0) const {
    std::vector<std::int64_t> choices(hello_.num_envs());
    for (std::size_t env = 0; env < choices.size(); ++env) choices[env] = choice + static_cast<std::int64_t>(env);
    v1::ActResponse response;
    response.mutable_actions()->set_step(step);
    response.mutable_actions()->add_leaves(choices.data(), choices.size() * sizeof(choices[0]));
    return response;
  }

  // Answers `count` steps and returns them; fewer at the end of the stream.
  std::vector<v1::Observations> Answer(std::size_t count, std::int64_t choice = 0) {
    std::vector<v1::Observations> steps;
    while (steps.size() < count) {
      const auto request = Read();
      if (!request.has_value() || !request->has_observations()) break;
      steps.push_back(request->observations());
      Write(Actions(steps.back().step(), choice));
    }
    return steps;
  }

  // Answers until the end; returns the Bye, if there was one.
  std::optional<v1::Bye> AnswerAll() {
    while (const auto request = Read()) {
      if (request->has_bye()) return request->bye();
      Write(Actions(request->observations().step()));
    }
    return std::nullopt;
  }

  const v1::Hello& hello() const { return hello_; }
  const grpc::ServerContext& context() const { return *context_; }

 private:
  grpc::ServerContext* context_;
  grpc::ServerReaderWriter<v1::ActResponse, v1::ActRequest>* stream_;
  v1::Hello hello_;
};

// A server that listens until destroyed; the script runs once per stream, in a thread of the server.
class FakeLearner final : public v1::ActorPool::Service {
 public:
  using Script = std::function<grpc::Status(FakeStream&)>;

  explicit FakeLearner(Script script, const std::string& address = "127.0.0.1:0") : script_(std::move(script)) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = port > 1 ? "127.0.0.1:" + std::to_string(port) : address;
  }
  ~FakeLearner() override { Stop(); }

  // Ends all streams at once.
  void Stop() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  const std::string& address() const { return address_; }

 private:
  grpc::Status Act(grpc::ServerContext* context,
                   grpc::ServerReaderWriter<v1::ActResponse, v1::ActRequest>* stream) override {
    FakeStream end(context, stream);
    return script_(end);
  }

  const Script script_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Returns options of a small environment: two float32 numbers, four actions.
inline Options SmallOptions(const std::string& address, std::uint32_t num_envs = 1) {
  return {.address = address,
          .env_server_id = "tests",
          .env_id = "Small-v0",
          .num_envs = num_envs,
          .observation = {{.dtype = DType::kFloat32, .shape = {2}}},
          .action = {{.dtype = DType::kInt64, .num_categories = 4}},
          .first_backoff = std::chrono::milliseconds(1),
          .longest_backoff = std::chrono::milliseconds(2)};
}

inline constexpr std::array<float, 2> kNumbers{1.5F, -2.5F};

}  // namespace kubebeast::client
