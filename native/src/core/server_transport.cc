#include "server_transport.h"

#include <atomic>
#include <string>
#include <utility>

#include "actor_stream.h"
#include "transport.h"

namespace kubebeast {
namespace {

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Deletes itself when gRPC is done with it.
class ServerTransport final : public Reactor, public Transport {
 public:
  ServerTransport(std::shared_ptr<PoolContext> pool, grpc::CallbackServerContext* context)
      : context_(context), stream_(std::make_shared<ActorStream>(std::move(pool), *this, context->peer())) {
    stream_->Start();
    made_.store(true, std::memory_order_release);
  }

  void Read(grpc::ByteBuffer* message) override { StartRead(message); }
  void Write(const grpc::ByteBuffer* message) override { StartWrite(message); }
  void Finish(const absl::Status& status) override { Reactor::Finish(ToGrpcStatus(status)); }
  void Cancel() override { context_->TryCancel(); }

 private:
  void OnReadDone(bool ok) override { stream().OnReadDone(ok); }
  void OnWriteDone(bool ok) override { stream().OnWriteDone(ok); }
  void OnDone() override {
    stream().OnDone();
    delete this;
  }

  // Events come after the constructor, but how gRPC hands them to other threads is invisible to ThreadSanitizer.
  ActorStream& stream() const {
    made_.load(std::memory_order_acquire);
    return *stream_;
  }

  grpc::CallbackServerContext* const context_;
  const std::shared_ptr<ActorStream> stream_;
  std::atomic<bool> made_ = false;
};

class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpcStatus(status)); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

Reactor* PoolService::Act(grpc::CallbackServerContext* context) {
  if (const absl::Status status = pool_->token.Check(context->client_metadata()); !status.ok()) {
    if (absl::IsUnauthenticated(status)) ++pool_->stats->streams_unauthenticated;
    pool_->AddRefusal(context->peer(), status);
    return new RefusedCall(status);
  }
  return new ServerTransport(pool_, context);
}

}  // namespace kubebeast
