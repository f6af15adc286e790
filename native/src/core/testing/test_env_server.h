// An env-server that listens, for tests of the learner's calls.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "testing/pool_test_util.h"

namespace kubebeast {

// A server with a call handler that the test supplies.
class TestEnvServer final : public v1::EnvServer::Service, public TestMessages {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ActRequest, v1::ActResponse>;
  using Script = std::function<grpc::Status(TestEnvServer&, Stream&)>;

  explicit TestEnvServer(Script script, std::uint32_t first_env = 0,
                         grpc_compression_algorithm compression = GRPC_COMPRESS_NONE)
      : TestMessages(2, first_env), script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.SetDefaultCompressionAlgorithm(compression);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~TestEnvServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  const std::string& address() const { return address_; }

  // Sends the Hello and blocks until the Welcome is there.
  bool Join(Stream& stream) const {
    stream.Write(HelloMessage());
    v1::ActResponse response;
    return stream.Read(&response) && response.has_welcome();
  }

  // Steps until the learner sends anything but Actions, and returns it; empty if the learner sends nothing more.
  v1::ActResponse Play(Stream& stream) const {
    v1::ActResponse response;
    for (std::uint64_t step = 0;; ++step) {
      response.Clear();
      if (!stream.Write(StepMessage(step)) || !stream.Read(&response) || !response.has_actions()) return response;
      EXPECT_EQ(response.actions().step(), step);
    }
  }

  // Returns the metadata "authorization" of the last call.
  std::string authorization() {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }

  void WaitForCalls(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(called_.wait_for(lock, kPatience, [&] { return num_calls_ >= count; }));
  }

 private:
  grpc::Status Play(grpc::ServerContext* context, Stream* stream) override {
    {
      const std::lock_guard lock(mutex_);
      ++num_calls_;
      const auto entry = context->client_metadata().find("authorization");
      if (entry != context->client_metadata().end()) authorization_.assign(entry->second.data(), entry->second.size());
      called_.notify_all();
    }
    return script_(*this, *stream);
  }

  const Script script_;
  std::mutex mutex_;
  std::condition_variable called_;
  int num_calls_ = 0;
  std::string authorization_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

inline grpc::Status JoinAndPlay(TestEnvServer& server, TestEnvServer::Stream& stream) {
  if (server.Join(stream)) server.Play(stream);
  return grpc::Status::OK;
}

}  // namespace kubebeast
