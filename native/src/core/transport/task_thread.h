// A thread for work that may wait, which transport threads must not.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "sync/mutex.h"

namespace kubebeast {

// Runs tasks one after the other, from the first one on; the destructor waits until all have run. Thread-safe.
class TaskThread {
 public:
  using Task = std::function<void()>;

  static constexpr std::size_t kMaxWaiting = 4096;

  TaskThread() = default;
  ~TaskThread() {
    {
      const MutexLock lock(mutex_);
      closing_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // False where too many tasks wait. Never blocks.
  [[nodiscard]] bool Run(Task task) {
    const MutexLock lock(mutex_);
    if (tasks_.size() >= kMaxWaiting) return false;
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { RunAll(); });
    changed_.NotifyAll();
    return true;
  }

 private:
  void RunAll() {
    while (const Task task = Next()) task();
  }

  // Waits for the next task; none at the end.
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
