// A call as messages of bytes, for a session that is implemented elsewhere: the env-server's in Python.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "call.h"
#include "sync/clock.h"
#include "sync/mutex.h"

namespace kubebeast::client {

// Byte stream without threads: Send writes by itself, and the caller of Receive takes the events of the call out of
// gRPC's queue, so that an answer wakes its thread and no other one. Thread-safe except Receive: one thread at a time.
class ByteStream {
 public:
  enum class Received : std::uint8_t { kMessage, kNothing, kEnd };

  // Dials at once; Receive reports the success. authorization: the header of that name.
  ByteStream(std::shared_ptr<grpc::Channel> channel, const std::optional<std::string>& authorization);
  // Cancels the call unless it has ended.
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Never blocks: a message that gRPC does not accept yet is sent from within Receive. Messages after the last one are
  // dropped.
  void Send(grpc::Slice message, bool is_last = false);
  // Blocks until there is a message or the end, or until the deadline: kNothing.
  Received Receive(Clock::time_point deadline);
  // Ends the call at once and wakes Receive.
  void Cancel();

  // Returns the message after kMessage, until the next Receive; by the same thread.
  grpc::ByteBuffer* message() { return call_.message(); }
  // Returns the status after kEnd.
  const grpc::Status& status() const { return call_.status(); }

 private:
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TryWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if the event brought a message.
  bool OnEvent(void* tag, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finishing_ && call_.idle(); }

  grpc::CompletionQueue queue_;
  Mutex mutex_;  // guards the call too, except its message and its status
  Call call_;
  std::deque<grpc::Slice> unsent_ ABSL_GUARDED_BY(mutex_);
  bool has_last_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kubebeast::client
