#include "transport/client_transport.h"

#include <grpcpp/generic/generic_stub.h>

#include <utility>

#include "wire/handshake_codec.h"

namespace kubebeast {
namespace {

constexpr char kMethod[] = "/kubebeast.v1.EnvServer/Play";

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

ClientTransport::ClientTransport(std::shared_ptr<PoolContext> pool, std::string peer, OnEnd on_end)
    : on_end_(std::move(on_end)), stream_(std::make_shared<ActorStream>(std::move(pool), *this, std::move(peer))) {
  grpc_metadata_array_init(&initial_metadata_);
  grpc_metadata_array_init(&trailing_metadata_);
}

void ClientTransport::Start(const std::shared_ptr<grpc::Channel>& channel,
                            const std::optional<std::string>& authorization, grpc::CompletionQueue& queue) {
  grpc::GenericStub(channel).PrepareCall(&context_, kMethod, &queue);
  call_ = context_.c_call();
  if (authorization.has_value()) {
    authorization_.key = grpc_slice_from_static_string("authorization");
    authorization_.value = grpc_slice_from_copied_buffer(authorization->data(), authorization->size());
  }
  {
    const MutexLock lock(mutex_);
    Batch first;
    first.SendInitialMetadata(&authorization_, authorization.has_value() ? 1 : 0);
    Begin(first.ReceiveInitialMetadata(&initial_metadata_), started_);
    Batch last;
    Begin(last.ReceiveStatus(&trailing_metadata_, &code_, &details_), status_);
  }
  stream_->Start();
  Release();
}

void ClientTransport::Release() {
  if (!holds_.Drop()) return;
  stream_->OnDone();
  on_end_(stream_->accepted(), {static_cast<absl::StatusCode>(code_), grpc::StringFromCopiedSlice(details_)});
  delete this;
}

ClientTransport::~ClientTransport() {
  grpc_slice_unref(authorization_.value);
  grpc_slice_unref(details_);
  grpc_metadata_array_destroy(&initial_metadata_);
  grpc_metadata_array_destroy(&trailing_metadata_);
}

void ClientTransport::Begin(Batch& batch, Poller::Event& event) {
  holds_.Take();
  batch.Begin(call_, event);
}

void ClientTransport::Read() {
  const MutexLock lock(mutex_);
  reading_ = true;
  Batch batch;
  Begin(batch.Receive(&received_), read_);
}

void ClientTransport::Write(Message message) {
  const MutexLock lock(mutex_);
  writing_ = true;
  sent_ = std::move(message);
  Batch batch;
  Begin(batch.Send(sent_), written_);
}

void ClientTransport::Exchange(Message message) {
  const MutexLock lock(mutex_);
  reading_ = writing_ = true;
  sent_ = std::move(message);
  // Two batches: if the message cannot be sent, as the peer has sent Bye and ended the call, gRPC would discard the
  // message that it received for the same batch.
  Batch receive;
  Begin(receive.Receive(&received_), read_);
  Batch send;
  Begin(send.Send(sent_), written_);
}

void ClientTransport::Finish(const absl::Status& status) {
  const MutexLock lock(mutex_);
  if (peer_is_done_) return;
  last_status_ = status;
  // gRPC takes one message at a time.
  if (!writing_) SendLast();
  if (!reading_) ReceiveUnread();
}

void ClientTransport::SendLast() {
  if (!last_status_.has_value() || std::exchange(said_last_, true)) return;
  Batch batch;
  if (!last_status_->ok()) {
    sent_ = Message(EncodeEnd(*last_status_));
    batch.Send(sent_);
  }
  Begin(batch.HalfClose(), last_);
}

void ClientTransport::ReceiveUnread() {
  reading_ = true;
  Batch batch;
  Begin(batch.Receive(&received_), read_);
}

bool ClientTransport::OnReadFor(const Message& message) {
  const MutexLock lock(mutex_);
  reading_ = false;
  peer_is_done_ = peer_is_done_ || !message.has_value();
  if (!last_status_.has_value()) return true;
  // The status of a call comes after its last message.
  if (!peer_is_done_) ReceiveUnread();
  return false;
}

bool ClientTransport::OnWrittenFor() {
  const MutexLock lock(mutex_);
  writing_ = false;
  if (!last_status_.has_value()) return true;
  if (!peer_is_done_) SendLast();
  return false;
}

void ClientTransport::OnRead(bool /*ok*/) {
  Message message(std::exchange(received_, nullptr));
  if (OnReadFor(message)) stream_->OnRead(std::move(message));
}

void ClientTransport::OnWritten(bool ok) {
  if (OnWrittenFor()) stream_->OnWritten(ok);
}

void ClientTransport::OnStatus(bool /*ok*/) {
  {
    const MutexLock lock(mutex_);
    peer_is_done_ = true;
  }
  stream_->OnPeerGone();
}

}  // namespace kubebeast
