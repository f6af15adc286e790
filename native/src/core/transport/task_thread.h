// A thread for work that may block, which transport threads must not.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "sync/mutex.h"
#include "sync/thread.h"

namespace kubebeast {

// Runner of tasks, one after the other, on a thread that starts with the first one and ends with Stop. Thread-safe.
class TaskThread {
 public:
  using Task = std::function<void()>;

  static constexpr std::size_t kMaxWaiting = 4096;

  TaskThread() = default;
  ~TaskThread() { Stop(); }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Blocks until all tasks have run. Idempotent; from one thread at a time.
  void Stop() {
    std::thread thread;
    {
      const MutexLock lock(mutex_);
      closing_ = true;
      thread = std::move(thread_);
      changed_.NotifyAll();
    }
    if (thread.joinable()) thread.join();
  }

  // Returns false if too many tasks wait, if the system allows no more threads, and after Stop. Never blocks.
  [[nodiscard]] bool Run(Task task) {
    const MutexLock lock(mutex_);
    if (closing_ || tasks_.size() >= kMaxWaiting) return false;
    if (!thread_.joinable() && !StartThread(thread_, [this] { RunAll(); }).ok()) return false;
    tasks_.push_back(std::move(task));
    changed_.NotifyAll();
    return true;
  }

 private:
  void RunAll() {
    while (const Task task = Next()) task();
  }

  // Blocks until there is a task; returns an empty one after Stop.
  Task Next() {
    const MutexLock lock(mutex_);
    while (!closing_ && tasks_.empty()) changed_.Wait(mutex_);
    if (tasks_.empty()) return nullptr;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  Mutex mutex_;
  CondVar changed_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
