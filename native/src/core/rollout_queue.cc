#include "rollout_queue.h"

#include <algorithm>
#include <utility>

namespace kubebeast {
namespace {

std::size_t NumSteps(const std::vector<FinishedUnroll>& unrolls) {
  std::size_t steps = 0;
  for (const FinishedUnroll& unroll : unrolls) steps += unroll.num_valid;
  return steps;
}

}  // namespace

RolloutQueue::RolloutQueue(std::size_t capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats)
    : min_partial_steps_(std::max<std::size_t>(min_partial_steps, 1)), stats_(std::move(stats)), queue_(capacity) {}

void RolloutQueue::CountSampled(std::size_t steps) {
  stats_->steps_sampled += static_cast<std::int64_t>(steps);
  stats_->steps_in_flight += static_cast<std::int64_t>(steps);
}

void RolloutQueue::CountLeaving(std::size_t steps, Stats::Value& where) {
  where += static_cast<std::int64_t>(steps);
  stats_->steps_in_flight -= static_cast<std::int64_t>(steps);
}

void RolloutQueue::Deliver(const std::shared_ptr<const Unroll>& unroll) {
  const bool partial = unroll->end != Unroll::End::kNone;
  const std::size_t min_steps = partial ? min_partial_steps_ : 1;
  std::vector<FinishedUnroll> finished;
  std::size_t too_short = 0;
  for (std::uint32_t env = 0; env < unroll->num_envs(); ++env) {
    const std::size_t num_valid = unroll->num_valid(env);
    if (num_valid < min_steps) {
      too_short += num_valid;
    } else {
      finished.push_back({unroll, env, num_valid});
    }
  }
  const std::size_t steps = NumSteps(finished);
  const auto count = static_cast<std::int64_t>(finished.size());
  if (queue_.Push(finished)) {
    CountLeaving(too_short, stats_->steps_dropped_partial);
    (partial ? stats_->rollouts_partial : stats_->rollouts_completed) += count;
  } else {
    CountLeaving(steps + too_short, stats_->steps_dropped_close);
  }
}

absl::StatusOr<std::vector<FinishedUnroll>> RolloutQueue::Pop(std::size_t count, Clock::time_point deadline) {
  auto unrolls = queue_.Pop(count, deadline);
  if (unrolls.ok()) CountLeaving(NumSteps(*unrolls), stats_->steps_delivered);
  return unrolls;
}

void RolloutQueue::Close() { CountLeaving(NumSteps(queue_.Close()), stats_->steps_dropped_close); }

}  // namespace kubebeast
