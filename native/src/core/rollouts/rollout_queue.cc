#include "rollouts/rollout_queue.h"

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

RolloutQueue::RolloutQueue(QueueCapacity capacity, std::size_t min_partial_steps, std::shared_ptr<Stats> stats,
                           const std::vector<double>& task_weights)
    : min_partial_steps_(std::max<std::size_t>(min_partial_steps, 1)),
      stats_(std::move(stats)),
      queue_(capacity, task_weights) {}

void RolloutQueue::Deliver(const std::shared_ptr<const Unroll>& unroll, Producer stream, std::size_t task) {
  const bool partial = unroll->end != Unroll::End::kNone;
  const std::size_t min_steps = partial ? min_partial_steps_ : 1;
  const Clock::time_point now = Clock::now();
  std::vector<FinishedUnroll> finished;
  std::vector<FinishedUnroll> too_short;
  for (std::uint32_t env = unroll->envs.first; env < unroll->envs.end(); ++env) {
    const std::size_t num_valid = unroll->num_valid(env);
    if (num_valid > 0) (num_valid < min_steps ? too_short : finished).push_back({unroll, env, num_valid, task, now});
  }
  std::vector<FinishedUnroll> stale;
  if (IsStale(*unroll)) stale.swap(finished);
  const auto count = static_cast<std::int64_t>(finished.size());
  if (!queue_.Push(finished, stream)) {
    stats_->CountLeaving(NumSteps(finished) + NumSteps(stale) + NumSteps(too_short), stats_->steps_dropped_close);
    return;
  }
  Drop(too_short, stats_->steps_dropped_partial, stats_->rollouts_dropped_partial);
  Drop(stale, stats_->steps_dropped_stale, stats_->rollouts_dropped_stale);
  (partial ? stats_->rollouts_partial : stats_->rollouts_completed) += count;
}

absl::StatusOr<std::vector<FinishedUnroll>> RolloutQueue::Pop(std::size_t count, Clock::time_point deadline,
                                                              std::int64_t min_policy_version) {
  min_policy_version_ = min_policy_version;
  std::vector<FinishedUnroll> stale;
  auto unrolls =
      queue_.Pop(count, deadline, [this](const FinishedUnroll& finished) { return IsStale(*finished.unroll); }, stale);
  Drop(stale, stats_->steps_dropped_stale, stats_->rollouts_dropped_stale);
  if (!unrolls.ok()) return unrolls;
  stats_->CountLeaving(NumSteps(*unrolls), stats_->steps_delivered);
  stats_->rollouts_delivered += static_cast<std::int64_t>(unrolls->size());
  const Clock::time_point now = Clock::now();
  for (const FinishedUnroll& finished : *unrolls) {
    stats_->histograms.rollout_queue_wait.Observe(now - finished.finished_at);
  }
  return unrolls;
}

bool RolloutQueue::IsStale(const Unroll& unroll) const {
  return min_policy_version_ > 0 && unroll.policy_version() < min_policy_version_;
}

void RolloutQueue::Drop(const std::vector<FinishedUnroll>& unrolls, Stats::Value& steps, Stats::Value& rollouts) {
  stats_->CountLeaving(NumSteps(unrolls), steps);
  rollouts += static_cast<std::int64_t>(unrolls.size());
}

void RolloutQueue::Close() { stats_->CountLeaving(NumSteps(queue_.Close()), stats_->steps_dropped_close); }

}  // namespace kubebeast
