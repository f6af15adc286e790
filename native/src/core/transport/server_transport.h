// Calls of env-servers that dial.
#pragma once

#include <grpc/grpc.h>

#include <cstdint>
#include <memory>
#include <string>

#include "calls/batch.h"
#include "calls/call_event.h"
#include "calls/transport.h"
#include "door/stream_pass.h"
#include "stream/actor_stream.h"
#include "stream/pool_context.h"

namespace kubebeast {

// Transport of one call of ActorPool.Act, which it owns. Begins batches with its stream locked, so one at a time;
// deletes itself once it is finished and released and gRPC is done with it.
class ServerTransport final : public Transport {
 public:
  // connection: null if the peer is local.
  ServerTransport(std::shared_ptr<PoolContext> pool, grpc_call* call, const std::string& peer,
                  std::shared_ptr<Connection> connection);

  // Makes a stream of the call; a call without Start needs Finish. Once.
  void Start();
  // Gives up the creator's hold; once, after Start or Finish.
  void Release();

  void Admit(std::uint64_t max_step_bytes) override;
  void Read() override;
  void Write(Message message) override;
  void Exchange(Message message) override;
  void Finish(const absl::Status& status) override;
  void Cancel() override { grpc_call_cancel(call_, /*reserved=*/nullptr); }

 private:
  ~ServerTransport() override;

  // Counts the end of the call, and shuts the connection down if too many end the same way.
  void CountEnd();
  // Adds the initial metadata to the batch of the first message or status; returns the batch.
  Batch& AddMetadata(Batch& batch);
  void Begin(Batch& batch, Poller::Event& event);
  void OnRead(bool ok);
  void OnWritten(bool ok) { stream_->OnWritten(ok); }
  void OnExchanged(bool ok);
  void OnFinished(bool /*ok*/) {}
  void OnClosed(bool /*ok*/) { stream_->OnPeerGone(); }

  const std::shared_ptr<PoolContext> pool_;
  grpc_call* const call_;
  StreamPass pass_;
  bool is_offence_ = false;  // true if the status of Finish marks an offence
  const std::shared_ptr<ActorStream> stream_;
  CallHolds holds_;
  bool said_metadata_ = false;
  int cancelled_ = 0;
  Message sent_;
  grpc_byte_buffer* received_ = nullptr;
  CallEvent<ServerTransport, &ServerTransport::OnRead> read_{*this};
  CallEvent<ServerTransport, &ServerTransport::OnWritten> written_{*this};
  CallEvent<ServerTransport, &ServerTransport::OnExchanged> exchanged_{*this};
  CallEvent<ServerTransport, &ServerTransport::OnFinished> finished_{*this};
  CallEvent<ServerTransport, &ServerTransport::OnClosed> closed_{*this};
};

}  // namespace kubebeast
