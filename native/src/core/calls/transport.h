// What a stream needs of gRPC, whoever dialled.
#pragma once

#include "absl/status/status.h"
#include "calls/message.h"

namespace kubebeast {

// One call. Its events go to an ActorStream, one at a time: OnRead, OnWritten, OnPeerGone and in the end OnDone, after
// which the transport is gone. One read and one write at a time; none of the methods blocks or calls back.
class Transport {
 public:
  virtual ~Transport() = default;

  // Waits for the peer's next message: OnRead.
  virtual void Read() = 0;
  // OnWritten.
  virtual void Write(Message message) = 0;
  // Write and Read in one go, which costs less than one after the other. OnWritten may come with OnRead, when both are
  // done.
  virtual void Exchange(Message message) = 0;
  // Tells the peer that the stream is over, and why; what it still sends is not read. Once; nothing but Cancel follows.
  virtual void Finish(const absl::Status& status) = 0;
  // Cuts the call off, for a peer that does not take its status.
  virtual void Cancel() = 0;
};

}  // namespace kubebeast
