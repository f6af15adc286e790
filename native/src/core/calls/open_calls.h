// Counter of open calls, with a wait for their end.
#pragma once

#include <cstddef>

#include "sync/mutex.h"

namespace kubebeast {

// A number of open calls. Thread-safe; only Wait blocks.
class OpenCalls {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++num_;
  }
  void Remove() {
    const MutexLock lock(mutex_);
    if (--num_ == 0) ended_.NotifyAll();
  }
  // Blocks until every call has ended.
  void Wait() {
    const MutexLock lock(mutex_);
    while (num_ > 0) ended_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  std::size_t num_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kubebeast
