// The calls that come in.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "calls/poller.h"
#include "stream/pool_context.h"
#include "transport/health.h"
#include "transport/server_transport.h"
#include "transport/task_thread.h"

namespace kubebeast {

// Makes a stream of every call of ActorPool.Act whose bearer token is right, and answers health checks; other methods
// are unknown. The file of tokens is read by a thread of its own. Outlives the server and its queue.
class PoolService final : private Poller::Event {
 public:
  explicit PoolService(std::shared_ptr<PoolContext> pool);
  ~PoolService() override;

  void Register(grpc::ServerBuilder& builder);
  // Takes calls, whose events come to the queue, until the server is shut down.
  void Start(grpc::Server& server, grpc::ServerCompletionQueue& queue);

  Health& health() { return health_; }

 private:
  struct Incoming;

  void Request();
  void Run(bool ok) override;
  void StartStream(const Incoming& incoming, const std::string& peer);
  void Judge(ServerTransport& call, const std::optional<std::string>& authorization, const std::string& peer);

  const std::shared_ptr<PoolContext> pool_;
  std::optional<grpc::AsyncGenericService> every_method_;  // keeps gRPC from answering by itself
  grpc_server* server_ = nullptr;
  grpc_completion_queue* queue_ = nullptr;
  std::unique_ptr<Incoming> incoming_;  // the next call, which gRPC fills in
  Health health_;
  TaskThread token_reader_;
};

}  // namespace kubebeast
