// Finished unrolls on their way to the learner, and the books of the steps in them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bounded_queue.h"
#include "rollout_batch.h"
#include "stats.h"
#include "unroll.h"

namespace kubebeast {

// Every valid transition is counted when it is sampled and once more when it leaves: delivered by Pop, dropped with an
// unroll that is too short, or dropped by Close. In between it is in flight. Thread-safe; only Pop waits.
class RolloutQueue {
 public:
  using Clock = std::chrono::steady_clock;
  using Ticket = BoundedQueue<FinishedUnroll>::Ticket;

  // An environment's unroll that ended early with fewer than min_partial_steps valid transitions is dropped.
  RolloutQueue(std::size_t capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats);

  // Counts transitions of a started unroll, which must come to Deliver.
  void CountSampled(std::size_t steps);

  // Takes the unrolls of all environments, also beyond capacity; those without a valid transition are left out.
  void Deliver(const std::shared_ptr<const Unroll>& unroll);

  // As BoundedQueue.
  std::optional<Ticket> Park(std::function<void()> resume) { return queue_.Park(std::move(resume)); }
  void Cancel(Ticket ticket) { queue_.Cancel(ticket); }
  absl::StatusOr<std::vector<FinishedUnroll>> Pop(std::size_t count, Clock::time_point deadline);

  // Wakes every waiter and drops what is queued and what is still delivered. Idempotent.
  void Close();

  std::size_t size() const { return queue_.size(); }
  std::size_t num_parked() const { return queue_.num_parked(); }

 private:
  // Moves steps from in flight to where they ended.
  void CountLeaving(std::size_t steps, Stats::Value& where);

  const std::size_t min_partial_steps_;
  const std::shared_ptr<Stats> stats_;
  BoundedQueue<FinishedUnroll> queue_;
};

}  // namespace kubebeast
