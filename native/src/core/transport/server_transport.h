// Calls of env-servers that dial.
#pragma once

#include <grpc/grpc.h>

#include <memory>
#include <string>

#include "calls/batch.h"
#include "calls/call_event.h"
#include "calls/transport.h"
#include "stream/actor_stream.h"
#include "stream/pool_context.h"

namespace kubebeast {

// One call of ActorPool.Act, which it takes over. Begins batches while its stream is locked, so one at a time; ends,
// and deletes itself, when it was finished and released and gRPC is done with it.
class ServerTransport final : public Transport {
 public:
  ServerTransport(std::shared_ptr<PoolContext> pool, grpc_call* call, const std::string& peer);

  // Makes a stream of the call; else it is to be finished. Once.
  void Start() { stream_->Start(); }
  // Once, by whoever made it, after Start or Finish.
  void Release();

  void Read() override;
  void Write(Message message) override;
  void Exchange(Message message) override;
  void Finish(const absl::Status& status) override;
  void Cancel() override { grpc_call_cancel(call_, /*reserved=*/nullptr); }

 private:
  ~ServerTransport() override;

  // The batch of the first thing that is sent, and of what comes later.
  Batch& AddMetadata(Batch& batch);
  void Begin(Batch& batch, Poller::Event& event);
  void OnRead(bool ok);
  void OnWritten(bool ok) { stream_->OnWritten(ok); }
  void OnExchanged(bool ok);
  void OnFinished(bool /*ok*/) {}
  void OnClosed(bool /*ok*/) { stream_->OnPeerGone(); }

  grpc_call* const call_;
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
