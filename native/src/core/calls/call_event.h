// Events of one call, and a count of those that are outstanding.
#pragma once

#include <atomic>

#include "calls/poller.h"

namespace kubebeast {

// The number of things that a call waits for; the thread that drops the last one ends the call. Thread-safe.
class CallHolds {
 public:
  void Take() { num_.fetch_add(1, std::memory_order_relaxed); }
  // Returns true if nothing is left.
  [[nodiscard]] bool Drop() { return num_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<int> num_ = 1;  // held by the creator of the call until it is started
};

// An event that calls the method kHandler of the Call that owns it, and then its Release.
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
