// One call of ActorPool.Act.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sync/clock.h"

namespace kubebeast::client {

// A call with events in a completion queue, one per operation; the objects that it refers to must live until `idle`. A
// queue serves one call at a time. Not thread-safe.
class Call {
 public:
  enum class Event : std::uint8_t { kStarted, kRead, kWritten, kFinished };

  // Dials at once. authorization: the header of that name.
  Call(std::shared_ptr<grpc::Channel> channel, const std::optional<std::string>& authorization,
       grpc::CompletionQueue* queue);

  // Begins to read; leads to Event::kRead, with ok false at the end of the learner's messages. One at a time.
  void Read();
  grpc::ByteBuffer* message() { return &message_; }
  // Begins to write; leads to Event::kWritten. One at a time.
  void Write(const grpc::Slice& message);
  // Writes the last message and half-closes.
  void WriteLast(const grpc::Slice& message);
  // Requests the status; leads to Event::kFinished. After a failed start or the end of the learner's messages.
  void Finish();
  // Cancels the call: all events come at once.
  void Cancel() { context_.TryCancel(); }

  // Returns the event with this tag of the queue.
  Event Take(void* tag);
  // Returns true if no operation is under way.
  bool idle() const { return num_under_way_ == 0; }
  // Valid after Event::kFinished.
  const grpc::Status& status() const { return status_; }

 private:
  void* Begin(Event event);

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  int num_under_way_ = 0;
};

// Converts a deadline for a completion queue.
gpr_timespec ToGrpc(Clock::time_point deadline);

}  // namespace kubebeast::client
