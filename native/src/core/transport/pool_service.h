// Service for incoming calls.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "calls/incoming_call.h"
#include "calls/open_calls.h"
#include "calls/poller.h"
#include "stream/pool_context.h"
#include "transport/health.h"
#include "transport/server_transport.h"
#include "transport/task_thread.h"

namespace kubebeast {

// Service that makes a stream of every call of ActorPool.Act with a valid bearer token, and answers health checks;
// other methods are unknown. The thread of the streams' events passes on all other work: one thread reads the file of
// tokens, and another answers short calls, with its own queue for their events. Enough calls are requested in advance
// that none waits for the events of earlier ones; a connection that calls too often is shut down. Must outlive the
// server and its queue.
class PoolService final {
 public:
  explicit PoolService(std::shared_ptr<PoolContext> pool);
  ~PoolService();

  void Register(grpc::ServerBuilder& builder);
  // Accepts calls, with events in the queue, until the server is shut down. Returns Unavailable if the system allows no
  // more threads.
  absl::Status Start(grpc::Server& server, grpc::ServerCompletionQueue& queue);
  // Blocks until no call is being handled. Runs between the shutdown of the server and that of its queue. Idempotent.
  void Stop();

  Health& health() { return health_; }

 private:
  class ActMethod;
  class Act;
  class Other;

  // Returns false if the call must be dropped, as its connection is gone. A local peer has no connection.
  bool FindConnection(const std::string& peer, std::shared_ptr<Connection>* connection);
  void StartStream(std::unique_ptr<Act> incoming);
  void Judge(ServerTransport& call, const std::optional<std::string>& authorization, const std::string& peer);
  void StartShortCall(std::unique_ptr<Other> incoming);
  void Answer(const Other& incoming);

  const std::shared_ptr<PoolContext> pool_;
  std::unique_ptr<ActMethod> act_;
  std::optional<grpc::AsyncGenericService> other_methods_;  // keeps gRPC from answering other methods by itself
  grpc_server* server_ = nullptr;
  grpc_completion_queue* queue_ = nullptr;
  Health health_;
  std::atomic<bool> stopping_ = false;
  OpenCalls requests_;
  OpenCalls short_calls_;
  std::unique_ptr<Poller> answered_;  // events of short calls
  TaskThread answers_;
  TaskThread token_reader_;
};

}  // namespace kubebeast
