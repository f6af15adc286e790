// Calls of env-servers that dial.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "kubebeast_protos/v1/actor_pool.grpc.pb.h"
#include "pool_context.h"

namespace kubebeast {

// Makes a stream of every call whose bearer token is right.
class PoolService final : public v1::ActorPool::WithRawCallbackMethod_Act<v1::ActorPool::Service> {
 public:
  explicit PoolService(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Act(grpc::CallbackServerContext* context) override;

  const std::shared_ptr<PoolContext> pool_;
};

}  // namespace kubebeast
