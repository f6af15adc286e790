#include "transport/client_transport.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "stream/actor_stream.h"
#include "stream/transport.h"
#include "sync/mutex.h"
#include "wire/handshake_codec.h"

namespace kubebeast {
namespace {

using grpc::ByteBuffer;
using Stub = grpc::TemplatedGenericStub<ByteBuffer, ByteBuffer>;
using ClientCallReactor = grpc::ClientBidiReactor<ByteBuffer, ByteBuffer>;

constexpr char kMethod[] = "/kubebeast.v1.EnvServer/Play";

absl::Status ToAbslStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// Deletes itself when gRPC is done with it. Locks: a stream may call while it is locked, never the other way round.
class ClientTransport final : public ClientCallReactor, public Transport {
 public:
  ClientTransport(std::shared_ptr<PoolContext> pool, std::shared_ptr<grpc::Channel> channel, std::string peer,
                  OnCallEnd on_end)
      : call_(std::make_unique<Call>(std::move(channel))),
        on_end_(std::move(on_end)),
        stream_(std::make_shared<ActorStream>(std::move(pool), *this, std::move(peer))) {}

  void Start(const std::optional<std::string>& authorization) {
    if (authorization.has_value()) call_->context.AddMetadata("authorization", *authorization);
    call_->stub.PrepareBidiStreamingCall(&call_->context, kMethod, {}, this);
    stream_->Start();
    StartCall();
  }

  void Read(ByteBuffer* message) override {
    const MutexLock lock(mutex_);
    reading_ = true;
    StartRead(message);
  }

  void Write(const ByteBuffer* message) override {
    const MutexLock lock(mutex_);
    writing_ = true;
    StartWrite(message);
  }

  void Finish(const absl::Status& status) override {
    const MutexLock lock(mutex_);
    if (peer_is_done_) return;
    last_status_ = status;
    if (!writing_) SendLast();
    if (!std::exchange(reading_, true)) StartRead(&unread_);
  }

  void Cancel() override { call_->context.TryCancel(); }

 private:
  void OnReadDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      peer_is_done_ = !ok;
      if (last_status_.has_value()) {
        // The status of a call comes after its last message.
        if (ok) StartRead(&unread_);
        return;
      }
      reading_ = false;
    }
    stream_->OnReadDone(ok);
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (last_status_.has_value()) {
        if (ok) SendLast();
        return;
      }
    }
    stream_->OnWriteDone(ok);
  }

  void OnDone(const grpc::Status& status) override {
    // The last event; how gRPC brings it to this thread is invisible to ThreadSanitizer, and the lock is not.
    {
      const MutexLock lock(mutex_);
    }
    stream_->OnDone();
    call_.reset();
    on_end_(stream_->accepted(), ToAbslStatus(status));
    delete this;
  }

  // Says End, unless all is well, and half-closes; once.
  void SendLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(said_last_, true)) return;
    if (last_status_->ok()) {
      StartWritesDone();
      return;
    }
    const grpc::Slice slice(EncodeEnd(*last_status_));
    last_ = ByteBuffer(&slice, 1);
    StartWriteLast(&last_, {});
  }

  struct Call {
    explicit Call(std::shared_ptr<grpc::Channel> channel) : stub(std::move(channel)) {}
    Stub stub;
    grpc::ClientContext context;
  };

  std::unique_ptr<Call> call_;  // all that refers to the channel
  const OnCallEnd on_end_;
  const std::shared_ptr<ActorStream> stream_;

  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool peer_is_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool said_last_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> last_status_ ABSL_GUARDED_BY(mutex_);  // from Finish on
  ByteBuffer last_ ABSL_GUARDED_BY(mutex_);
  ByteBuffer unread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const PoolContext& pool, const Endpoint& endpoint,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (pool.transport_memory.has_value()) arguments.SetResourceQuota(*pool.transport_memory);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(pool.options.wire.max_message_bytes));
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Endpoints are addresses of the learner's own network.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!endpoint.server_name.empty()) arguments.SetSslTargetNameOverride(endpoint.server_name);
  return grpc::CreateCustomChannel(endpoint.address, credentials, arguments);
}

void StartPlay(std::shared_ptr<PoolContext> pool, std::shared_ptr<grpc::Channel> channel, const std::string& peer,
               const std::optional<std::string>& authorization, OnCallEnd on_end) {
  (new ClientTransport(std::move(pool), std::move(channel), peer, std::move(on_end)))->Start(authorization);
}

}  // namespace kubebeast
