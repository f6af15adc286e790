#include "transport/server_transport.h"

#include <utility>

namespace kubebeast {

ServerTransport::ServerTransport(std::shared_ptr<PoolContext> pool, grpc_call* call, const std::string& peer)
    : call_(call), stream_(std::make_shared<ActorStream>(std::move(pool), *this, peer)) {
  Batch batch;
  Begin(batch.ReceiveClose(&cancelled_), closed_);
}

ServerTransport::~ServerTransport() { grpc_call_unref(call_); }

void ServerTransport::Release() {
  if (!holds_.Drop()) return;
  stream_->OnDone();
  delete this;
}

void ServerTransport::Read() {
  Batch batch;
  Begin(batch.Receive(&received_), read_);
}

void ServerTransport::Write(Message message) {
  sent_ = std::move(message);
  Batch batch;
  Begin(AddMetadata(batch).Send(sent_), written_);
}

void ServerTransport::Exchange(Message message) {
  sent_ = std::move(message);
  Batch batch;
  Begin(AddMetadata(batch).Send(sent_).Receive(&received_), exchanged_);
}

void ServerTransport::Finish(const absl::Status& status) {
  Batch batch;
  Begin(AddMetadata(batch).SendStatus(status), finished_);
}

Batch& ServerTransport::AddMetadata(Batch& batch) {
  return std::exchange(said_metadata_, true) ? batch : batch.SendInitialMetadata();
}

void ServerTransport::Begin(Batch& batch, Poller::Event& event) {
  holds_.Take();
  batch.Begin(call_, event);
}

void ServerTransport::OnRead(bool /*ok*/) { stream_->OnRead(Message(std::exchange(received_, nullptr))); }

void ServerTransport::OnExchanged(bool ok) {
  stream_->OnWritten(ok);
  OnRead(ok);
}

}  // namespace kubebeast
