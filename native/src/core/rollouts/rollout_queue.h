// Finished unrolls on their way to the learner, and the books of the steps in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  using Ticket = BoundedQueue<FinishedUnroll>::Ticket;

  // An environment's unroll that ended early with fewer than min_partial_steps valid transitions is dropped.
  // task_weights: of the tasks' shares in what Pop takes.
  RolloutQueue(std::size_t capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats,
               std::vector<double> task_weights = {1.0});

  // Takes the unrolls of all environments, also beyond capacity; those without a valid transition are left out.
  void Deliver(const std::shared_ptr<const Unroll>& unroll, std::size_t task = 0);

  // As BoundedQueue.
  void Join(std::size_t task) { queue_.Join(task); }
  void Leave(std::size_t task) { queue_.Leave(task); }
  std::optional<Ticket> Park(std::function<void()> resume, std::size_t task = 0) {
    return queue_.Park(std::move(resume), task);
  }
  void Cancel(Ticket ticket) { queue_.Cancel(ticket); }
  // As BoundedQueue. From now on unrolls that began with weights older than min_policy_version are dropped, those that
  // wait among them; 0 drops none.
  absl::StatusOr<std::vector<FinishedUnroll>> Pop(std::size_t count, Clock::time_point deadline,
                                                  std::int64_t min_policy_version = 0);

  // Wakes every waiter and drops what is queued and what is still delivered. Idempotent.
  void Close();

  std::size_t size() const { return queue_.size(); }
  std::size_t num_parked() const { return queue_.num_parked(); }

 private:
  bool IsStale(const Unroll& unroll) const;
  void Drop(const std::vector<FinishedUnroll>& unrolls, Stats::Value& steps, Stats::Value& rollouts);

  const std::size_t min_partial_steps_;
  const std::shared_ptr<Stats> stats_;
  std::atomic<std::int64_t> min_policy_version_ = 0;
  BoundedQueue<FinishedUnroll> queue_;
};

}  // namespace kubebeast
