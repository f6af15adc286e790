// Calls of env-servers that dial.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "kubebeast_protos/v1/actor_pool.grpc.pb.h"
#include "stream/pool_context.h"
#include "transport/task_thread.h"

namespace kubebeast {

// Makes a stream of every call whose bearer token is right. The file of tokens is read by a thread of its own.
class PoolService final : public v1::ActorPool::WithRawCallbackMethod_Act<v1::ActorPool::Service> {
 public:
  explicit PoolService(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Act(grpc::CallbackServerContext* context) override;

  const std::shared_ptr<PoolContext> pool_;
  TaskThread token_reader_;
};

// Notices by every call, of whatever method, that its connection is no newcomer any more; intercepts nothing.
class CallWatcher final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallWatcher(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

 private:
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    pool_->newcomers.OnCall(call->server_context()->peer());
    return nullptr;
  }

  const std::shared_ptr<PoolContext> pool_;
};

}  // namespace kubebeast
