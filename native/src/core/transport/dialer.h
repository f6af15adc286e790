// Dialer of the env-servers that listen.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"
#include "transport/client_transport.h"

namespace kubebeast {

// A dialer that calls each endpoint without a stream, and again after its stream has ended, with a jittered exponential
// back-off. Thread-safe; does not block, except EndCalls.
class Dialer {
 public:
  explicit Dialer(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

  // Allows calls from now on. Their events come to the queue, which must outlive them.
  void Start(grpc::CompletionQueue& queue);

  // Replaces the endpoints: new ones are called at the next Tick; streams of omitted ones go on to their end.
  void SetEndpoints(const std::vector<Endpoint>& endpoints);

  // Calls the endpoints that are due.
  void Tick(Clock::time_point now);

  // Starts no more calls. Idempotent.
  void Stop();

  // After Stop: blocks until no call is under way; cancels the remaining ones at the deadline.
  void EndCalls(Clock::time_point deadline);

 private:
  struct Target {
    Endpoint endpoint;
    bool wanted = true;
    bool calling = false;
    ClientTransport* call = nullptr;  // null unless a call is started and has not ended
    Clock::time_point called_at{};
    Clock::time_point due{};
    unsigned num_failures = 0;  // number of failures in a row
  };

  // Returns the endpoints that are due, marked as under way.
  std::vector<Endpoint> TakeDue(Clock::time_point now);
  void Call(const Endpoint& endpoint, const std::optional<std::string>& authorization);
  bool idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnEnd(const std::string& address, bool accepted, const absl::Status& status);
  std::chrono::milliseconds NextDelay(Target& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<PoolContext> pool_;

  Mutex mutex_;
  CondVar ended_;
  grpc::CompletionQueue* queue_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<grpc::ChannelCredentials> credentials_ ABSL_GUARDED_BY(mutex_);  // set with the first endpoints
  bool cutting_off_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Target> targets_ ABSL_GUARDED_BY(mutex_);  // key: address
  std::minstd_rand random_ ABSL_GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace kubebeast
