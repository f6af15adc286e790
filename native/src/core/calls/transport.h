// Interface of a stream to gRPC, the same for both directions of dialing.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "calls/message.h"

namespace kubebeast {

// One call. Its events go to an ActorStream, one at a time: OnRead, OnWritten, OnPeerGone and finally OnDone, after
// which the transport is destroyed. At most one read and one write may be under way; no method blocks or calls back.
class Transport {
 public:
  virtual ~Transport() = default;

  // Admits the peer after a valid Hello, before the Welcome; max_step_bytes bounds its messages, with their framing.
  virtual void Admit(std::uint64_t /*max_step_bytes*/) {}
  // Reads the peer's next message; OnRead follows.
  virtual void Read() = 0;
  // Writes a message; OnWritten follows.
  virtual void Write(Message message) = 0;
  // Writes and reads in one operation, which costs less than one after the other. OnWritten may come with OnRead, when
  // both are done.
  virtual void Exchange(Message message) = 0;
  // Ends the stream with a status for the peer and reads no more messages. Once; only Cancel may follow.
  virtual void Finish(const absl::Status& status) = 0;
  // Cuts off the call of a peer that does not take its status.
  virtual void Cancel() = 0;
};

}  // namespace kubebeast
