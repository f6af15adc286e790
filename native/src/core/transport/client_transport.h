// Calls to env-servers that listen.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "calls/batch.h"
#include "calls/call_event.h"
#include "calls/transport.h"
#include "stream/actor_stream.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"

namespace kubebeast {

// Address of an env-server that listens.
struct Endpoint {
  std::string address;      // "host:port", "unix:/path"
  std::string server_name;  // name in its certificate; if empty, the host of `address`

  bool operator==(const Endpoint&) const = default;
};

// Returns a channel to the endpoint that shares its connection with no other one and connects when first used.
std::shared_ptr<grpc::Channel> OpenChannel(const PoolContext& pool, const Endpoint& endpoint,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Transport of one call of EnvServer.Play, and owner of its stream. Deletes itself at its end. Locks: a stream may call
// it with its own lock held, never the other way round.
class ClientTransport final : public Transport {
 public:
  // Receives the result of a call: true if the env-server's Hello was accepted, and the status that it returned.
  using OnEnd = std::function<void(bool accepted, const absl::Status& status)>;

  // peer: name of the endpoint. on_end runs once, after Start, as the last action before the destructor.
  ClientTransport(std::shared_ptr<PoolContext> pool, std::string peer, OnEnd on_end);

  // Starts the call and its stream; once. authorization: value of that metadata, if any.
  void Start(const std::shared_ptr<grpc::Channel>& channel, const std::optional<std::string>& authorization,
             grpc::CompletionQueue& queue);

  void Read() override;
  void Write(Message message) override;
  void Exchange(Message message) override;
  void Finish(const absl::Status& status) override;
  // May be called before Start, too.
  void Cancel() override { context_.TryCancel(); }

  void Release();

 private:
  ~ClientTransport() override;

  void Begin(Batch& batch, Poller::Event& event);
  // Sends End, unless the status is OK, and half-closes; once.
  void SendLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReceiveUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Return true if the stream must be notified of the read or write; else the call only goes on to its end.
  bool OnReadFor(const Message& message);
  bool OnWrittenFor();
  void OnStarted(bool /*ok*/) {}
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnSaidLast(bool /*ok*/) {}
  void OnStatus(bool ok);

  const OnEnd on_end_;
  const std::shared_ptr<ActorStream> stream_;
  grpc::ClientContext context_;  // owns the call
  grpc_call* call_ = nullptr;
  CallHolds holds_;

  // Buffers that gRPC reads and writes.
  grpc_metadata authorization_{};
  grpc_metadata_array initial_metadata_;
  grpc_metadata_array trailing_metadata_;
  grpc_status_code code_ = GRPC_STATUS_UNKNOWN;
  grpc_slice details_ = grpc_empty_slice();
  grpc_byte_buffer* received_ = nullptr;

  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool peer_is_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool said_last_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> last_status_ ABSL_GUARDED_BY(mutex_);  // set by Finish
  Message sent_ ABSL_GUARDED_BY(mutex_);

  CallEvent<ClientTransport, &ClientTransport::OnStarted> started_{*this};
  CallEvent<ClientTransport, &ClientTransport::OnRead> read_{*this};
  CallEvent<ClientTransport, &ClientTransport::OnWritten> written_{*this};
  CallEvent<ClientTransport, &ClientTransport::OnSaidLast> last_{*this};
  CallEvent<ClientTransport, &ClientTransport::OnStatus> status_{*this};
};

}  // namespace kubebeast
