#include "transport/poller.h"

#include <utility>

#ifdef __has_feature
#define KUBEBEAST_HAS_FEATURE(feature) __has_feature(feature)
#else
#define KUBEBEAST_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || KUBEBEAST_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_acquire(address) (void)(address)
#define __tsan_release(address) (void)(address)
#endif

namespace kubebeast {

// What was done before an operation began has happened before its completion: gRPC's queue says so, but how it does is
// invisible to ThreadSanitizer.
void* Poller::Event::MakeTag() {
  __tsan_release(this);
  return static_cast<grpc::internal::CompletionQueueTag*>(this);
}

bool Poller::Event::FinalizeResult(void** tag, bool* /*ok*/) {
  __tsan_acquire(this);
  *tag = this;
  return true;
}

Poller::Poller(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), thread_([this] { Poll(); }) {}

Poller::~Poller() {
  queue_->Shutdown();
  thread_.join();
}

void Poller::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Event*>(tag)->Run(ok);
}

}  // namespace kubebeast
