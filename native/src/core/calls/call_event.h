// Events of one call.
#pragma once

#include <atomic>

#include "calls/poller.h"

namespace kubebeast {

// Counts what a call waits for: whoever lets go of the last of it ends the call. Thread-safe.
class CallHolds {
 public:
  void Take() { num_.fetch_add(1, std::memory_order_relaxed); }
  // Whether nothing is left.
  [[nodiscard]] bool Drop() { return num_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<int> num_ = 1;  // of whoever made the call, until it is started
};

// Calls the method kHandler of a Call, which it belongs to, and then its Release.
template <typename Call, void (Call::*kHandler)(bool ok)>
class CallEvent final : public Poller::Event {
 public:
  explicit CallEvent(Call& call) : call_(call) {}
  void Run(bool ok) override {
    (call_.*kHandler)(ok);
    call_.Release();
  }

 private:
  Call& call_;
};

}  // namespace kubebeast
