// A thread for work that may wait, which transport threads must not.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace kubebeast {

// Runs tasks one after the other, from the first one on; the destructor waits until all have run. Thread-safe.
class TaskThread {
 public:
  using Task = std::function<void()>;

  static constexpr std::size_t kMaxWaiting = 4096;

  TaskThread() = default;
  ~TaskThread() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // False where too many tasks wait. Never blocks.
  [[nodiscard]] bool Run(Task task) {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= kMaxWaiting) return false;
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { RunAll(); });
    changed_.notify_all();
    return true;
  }

 private:
  void RunAll() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::deque<Task> tasks_;
  std::thread thread_;
};

}  // namespace kubebeast
