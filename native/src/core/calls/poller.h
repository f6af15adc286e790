// gRPC's events, taken by one thread.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>

namespace kubebeast {

// Runs the events of a completion queue, one after the other, in a thread of its own. While the thread waits, it does
// gRPC's reading and writing as well: a second one would share its epoll set, and wake for nothing or in its place.
class Poller {
 public:
  // What gRPC is given for an operation, and gives back when that is done.
  class Event : public grpc::internal::CompletionQueueTag {
   public:
    // To be called before the operation begins, for the tag of its completion.
    void* MakeTag();
    // In the poller's thread; ok: as gRPC says of the operation. May delete the event. Must not block.
    virtual void Run(bool ok) = 0;

   private:
    // The C++ queue hands the event out as it is.
    bool FinalizeResult(void** tag, bool* ok) final;
  };

  explicit Poller(std::unique_ptr<grpc::CompletionQueue> queue);
  // Waits for the events that are still to come: no operation may begin any more.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }

 private:
  void Poll();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

}  // namespace kubebeast
