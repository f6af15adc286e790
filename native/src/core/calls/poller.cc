#include "calls/poller.h"

#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace kubebeast {
namespace {

// These order the work before an operation's begin before its completion. gRPC's queue guarantees that order, but in a
// way that is invisible to ThreadSanitizer.
void TellBegin([[maybe_unused]] const Poller::Event& event) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(const_cast<Poller::Event*>(&event));
#endif
}

void TellCompletion([[maybe_unused]] const Poller::Event& event) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(const_cast<Poller::Event*>(&event));
#endif
}

}  // namespace

void* Poller::Event::MakeTag() {
  TellBegin(*this);
  return static_cast<grpc::internal::CompletionQueueTag*>(this);
}

bool Poller::Event::FinalizeResult(void** tag, bool* /*ok*/) {
  TellCompletion(*this);
  *tag = this;
  return true;
}

Poller::Poller(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(std::move(queue)), thread_([this] { Poll(); }) {}

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
