// Queue of finished unrolls for the learner, with counts of their steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "queues/bounded_queue.h"
#include "rollouts/rollout_batch.h"
#include "rollouts/unroll.h"
#include "stats/stats.h"

namespace kubebeast {

// Queue from the streams to the learner. Every valid transition is counted when it is sampled (Stats::CountSampled) and
// again when it leaves: delivered by Pop, dropped with an unroll that is too short or too old, or dropped by Close.
// Between the two it is in flight. Every task has its own lane, fed by streams. Thread-safe; only Pop blocks.
class RolloutQueue {
 public:
  // A stream, which delivers one unroll per environment at a time.
  using Producer = BoundedQueue<FinishedUnroll>::Producer;

  // An environment's unroll that ended early with fewer than min_partial_steps valid transitions is dropped.
  // task_weights: relative shares of the tasks in the unrolls that Pop takes.
  RolloutQueue(QueueCapacity capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats,
               const std::vector<double>& task_weights = {1.0});

  // Adds the unrolls of all environments, beyond capacity if necessary; those without a valid transition are left out.
  void Deliver(const std::shared_ptr<const Unroll>& unroll, Producer stream, std::size_t task = 0);

  // The calls of BoundedQueue.
  Producer Join(std::size_t task, std::size_t num_envs) { return queue_.Join(task, num_envs); }
  void Leave(Producer stream) { queue_.Leave(stream); }
  [[nodiscard]] bool Park(std::function<void()> resume, Producer stream) {
    return queue_.Park(std::move(resume), stream);
  }
  void Await(Producer stream, Clock::time_point since) { queue_.Await(stream, since); }
  [[nodiscard]] bool Return(Producer stream, Clock::time_point now) { return queue_.Return(stream, now); }
  void Resume() { queue_.Resume(); }
  // Pops as BoundedQueue does. From now on unrolls that began with weights older than min_policy_version are dropped,
  // waiting ones included; 0 drops none.
  absl::StatusOr<std::vector<FinishedUnroll>> Pop(std::size_t count, Clock::time_point deadline,
                                                  std::int64_t min_policy_version = 0);

  // Wakes every waiter and drops all unrolls, queued and yet to come. Idempotent.
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
