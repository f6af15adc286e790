// Thread that runs the events of gRPC's completion queue.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace kubebeast {

// A completion queue with a thread that runs its events one after the other. While the thread waits, it also reads and
// writes for gRPC; a second thread would share its epoll set, and wake without work or in its place.
class Poller {
 public:
  // The tag of an operation, which gRPC returns when the operation is done.
  class Event : public grpc::internal::CompletionQueueTag {
   public:
    // Returns the tag of the next operation; must be called before the operation begins.
    void* MakeTag();
    // Runs in the poller's thread; ok: gRPC's result of the operation. May delete the event. Must not block.
    virtual void Run(bool ok) = 0;

   private:
    // Makes the C++ queue return the event unchanged.
    bool FinalizeResult(void** tag, bool* ok) final;
  };

  explicit Poller(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(std::move(queue)) {}
  // Blocks until all outstanding events have run; no operation may begin any more.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Starts the thread. Returns Unavailable if the system allows no more threads.
  absl::Status Start();
  grpc::CompletionQueue& queue() { return *queue_; }

 private:
  void Poll();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

}  // namespace kubebeast
