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

// Its events come out of the completion queue, one for each operation; what it refers to must live until `idle`. One
// call at a time uses a queue. Not thread-safe.
class Call {
 public:
  enum class Event : std::uint8_t { kStarted, kRead, kWritten, kFinished };

  // Dials at once. authorization: the header of that name.
  Call(std::shared_ptr<grpc::Channel> channel, const std::optional<std::string>& authorization,
       grpc::CompletionQueue* queue);

  // Event::kRead, false at the end of what the learner sends; one at a time.
  void Read();
  grpc::ByteBuffer* message() { return &message_; }
  // Event::kWritten; one at a time.
  void Write(const grpc::Slice& message);
  // Write, and nothing after it.
  void WriteLast(const grpc::Slice& message);
  // Event::kFinished with the status; after a failed start or the end of what the learner sends.
  void Finish();
  // All events come at once.
  void Cancel() { context_.TryCancel(); }

  // Takes an event out of the queue.
  Event Take(void* tag);
  // Nothing is under way.
  bool idle() const { return num_under_way_ == 0; }
  // After Event::kFinished.
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

// A deadline as a completion queue takes it.
gpr_timespec ToGrpc(Clock::time_point deadline);

}  // namespace kubebeast::client
