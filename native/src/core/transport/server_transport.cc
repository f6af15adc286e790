#include "transport/server_transport.h"

#include <atomic>
#include <string>
#include <utility>

#include "stream/actor_stream.h"
#include "stream/transport.h"

namespace kubebeast {
namespace {

using ServerCallReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Deletes itself when gRPC is done with it.
class ServerTransport final : public ServerCallReactor, public Transport {
 public:
  ServerTransport(std::shared_ptr<PoolContext> pool, grpc::CallbackServerContext* context)
      : context_(context), stream_(std::make_shared<ActorStream>(std::move(pool), *this, context->peer())) {
    made_.store(true, std::memory_order_release);
  }

  // Makes a stream of the call; else it is to be finished.
  void Start() { stream_->Start(); }

  void Read(grpc::ByteBuffer* message) override { StartRead(message); }
  void Write(const grpc::ByteBuffer* message) override { StartWrite(message); }
  void Finish(const absl::Status& status) override { ServerCallReactor::Finish(ToGrpcStatus(status)); }
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

void Judge(PoolContext& pool, const grpc::CallbackServerContext& context, ServerTransport& call) {
  const absl::Status status = pool.token.Check(context.client_metadata());
  if (status.ok()) {
    call.Start();
    return;
  }
  if (absl::IsUnauthenticated(status)) ++pool.stats->streams_unauthenticated;
  pool.AddRefusal(context.peer(), status);
  call.Finish(status);
}

}  // namespace

ServerCallReactor* PoolService::Act(grpc::CallbackServerContext* context) {
  auto* const call = new ServerTransport(pool_, context);
  if (!pool_->token.enabled()) {
    call->Start();
  } else if (!token_reader_.Run([this, context, call] { Judge(*pool_, *context, *call); })) {
    call->Finish(absl::UnavailableError("too many calls wait for the check of their token"));
  }
  return call;
}

}  // namespace kubebeast
