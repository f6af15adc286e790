#include "calls/poller.h"

#include "sync/thread.h"

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

Poller::~Poller() {
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    Poll();
  }
}

absl::Status Poller::Start() {
  return StartThread(thread_, [this] { Poll(); });
}

void Poller::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Event*>(tag)->Run(ok);
}

}  // namespace kubebeast
