#include "transport/server_transport.h"

#include <utility>

namespace kubebeast {

ServerTransport::ServerTransport(std::shared_ptr<PoolContext> pool, grpc_call* call, const std::string& peer,
                                 std::shared_ptr<Connection> connection)
    : pool_(std::move(pool)),
      call_(call),
      pass_(std::move(connection)),
      stream_(std::make_shared<ActorStream>(pool_, *this, peer)) {
  Batch batch;
  Begin(batch.ReceiveClose(&cancelled_), closed_);
}

ServerTransport::~ServerTransport() { grpc_call_unref(call_); }

void ServerTransport::Start() {
  pass_.ExpectHello();
  if (pool_->token.enabled()) pool_->door.Trust(pass_.connection());
  stream_->Start();
}

void ServerTransport::Release() {
  if (!holds_.Drop()) return;
  stream_->OnDone();
  CountEnd();
  delete this;
}

void ServerTransport::CountEnd() {
  const auto& connection = pass_.connection();
  if (connection == nullptr) return;
  auto end = Connection::ActEnd::kInPeace;
  if (is_offence_) {
    end = Connection::ActEnd::kOffence;
  } else if (cancelled_ != 0 && !pass_.is_accepted()) {
    end = Connection::ActEnd::kCancelled;
  }
  if (connection->OnActEnd(end)) return;
  const bool is_rare = end == Connection::ActEnd::kCancelled &&
                       pool_->cancelled_calls.Take(HostOfPeer(connection->peer()), Clock::now());
  pool_->door.Refuse(*connection, is_rare ? connection_refusal::kCancelled : connection_refusal::kCalls);
}

void ServerTransport::Admit(std::uint64_t max_step_bytes) {
  if (pass_.is_accepted()) return;
  pass_.Accept(max_step_bytes);
  pool_->door.Accept(pass_.connection());
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
  is_offence_ = absl::IsUnauthenticated(status) || absl::IsInvalidArgument(status) || absl::IsDeadlineExceeded(status);
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

void ServerTransport::OnRead(bool /*ok*/) {
  Message message(std::exchange(received_, nullptr));
  // Before the stream answers: its peer's next message may arrive at once.
  if (message.has_value()) pass_.OnMessage(message.size());
  stream_->OnRead(std::move(message));
}

void ServerTransport::OnExchanged(bool ok) {
  stream_->OnWritten(ok);
  OnRead(ok);
}

}  // namespace kubebeast
