// Finished unrolls on their way to the learner, and the books of the steps in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rollouts/bounded_queue.h"
#include "rollouts/rollout_batch.h"
#include "rollouts/unroll.h"
#include "stats/stats.h"

namespace kubebeast {

// Every valid transition is counted when it is sampled (Stats::CountSampled) and once more when it leaves: delivered by
// Pop, dropped with an unroll that is too short or too old, or dropped by Close. In between it is in flight.
// Every task has a lane of its own, whose producers are streams. Thread-safe; only Pop waits.
class RolloutQueue {
 public:
  // A stream that delivers one unroll for each of its environments at a time.
  using Producer = BoundedQueue<FinishedUnroll>::Producer;

  // An environment's unroll that ended early with fewer than min_partial_steps valid transitions is dropped.
  // task_weights: of the tasks' shares in what Pop takes.
  RolloutQueue(QueueCapacity capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats,
               std::vector<double> task_weights = {1.0});

  // Takes the unrolls of all environments, also beyond capacity; those without a valid transition are left out.
  void Deliver(const std::shared_ptr<const Unroll>& unroll, Producer stream, std::size_t task = 0);

  // As BoundedQueue.
  Producer Join(std::size_t task, std::size_t num_envs) { return queue_.Join(task, num_envs); }
  void Leave(Producer stream) { queue_.Leave(stream); }
  [[nodiscard]] bool Park(std::function<void()> resume, Producer stream) {
    return queue_.Park(std::move(resume), stream);
  }
  void Resume() { queue_.Resume(); }
  // As BoundedQueue. From now on unrolls that began with weights older than min_policy_version are dropped, those that
  // wait among them; 0 drops none.
  absl::StatusOr<std::vector<FinishedUnroll>> Pop(std::size_t count, Clock::time_point deadline,
                                                  std::int64_t min_policy_version = 0);

  // Wakes every waiter and drops what is queued and what is still delivered. Idempotent.
  void Close();

  std::size_t size() const { return queue_.size(); }
  std::size_t num_running() const { return queue_.num_running(); }
  std::size_t num_parked() const { return queue_.num_parked(); }
  std::size_t capacity() const { return queue_.capacity(); }

 private:
  bool IsStale(const Unroll& unroll) const;
  void Drop(const std::vector<FinishedUnroll>& unrolls, Stats::Value& steps, Stats::Value& rollouts);

  const std::size_t min_partial_steps_;
  const std::shared_ptr<Stats> stats_;
  std::atomic<std::int64_t> min_policy_version_ = 0;
  BoundedQueue<FinishedUnroll> queue_;
};

}  // namespace kubebeast
