// Keeps a stream to each of the env-servers that listen.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"
#include "transport/client_transport.h"

namespace kubebeast {

// Calls an endpoint that has no stream, and again after its stream has ended, with a jittered exponential back-off.
// Thread-safe; nothing blocks.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  explicit Dialer(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

  // Replaces the endpoints: new ones are called at the next Tick; the streams of those left out go on to their end.
  void SetEndpoints(const std::vector<Endpoint>& endpoints);

  // Calls the endpoints that are due.
  void Tick(Clock::time_point now);

  // Calls nobody any more. Idempotent.
  void Stop();

  // Waits until no call is under way; false at the deadline.
  bool WaitUntilIdle(Clock::time_point deadline);

  // Drops the endpoints and their connections, once it is stopped. The connection of a call that is still under way is
  // kept for as long as the process lives.
  void Forget();

 private:
  struct Target {
    Endpoint endpoint;
    std::shared_ptr<grpc::Channel> channel;  // of the last call
    bool wanted = true;
    bool calling = false;
    Clock::time_point called_at{};
    Clock::time_point due{};
    unsigned num_failures = 0;  // in a row
  };

  struct Call {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };
  // The calls that are due, marked as under way.
  std::vector<Call> TakeDue(Clock::time_point now);
  void OnEnd(const std::string& address, bool accepted, const absl::Status& status);
  std::chrono::milliseconds NextDelay(Target& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<PoolContext> pool_;

  Mutex mutex_;
  CondVar idle_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_ ABSL_GUARDED_BY(mutex_);  // from the first endpoint on
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Target> targets_ ABSL_GUARDED_BY(mutex_);  // by address
  std::minstd_rand random_ ABSL_GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace kubebeast
