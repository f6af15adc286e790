#include "inference/step_trace.h"

#include <algorithm>

namespace kubebeast {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

void StreamTrace::Receive(const ObservationRows& rows, Clock::time_point now) {
  if (!running_.has_value()) return;
  running_->received = now;
  running_->step = rows.step;
  running_->num_envs = rows.num_envs();
  // The peer's value is untrusted: its environments cannot have taken longer than its answer.
  const auto longest = duration_cast<microseconds>(now - running_->actions_sent);
  running_->env = microseconds(std::min(rows.env_us, static_cast<std::uint64_t>(longest.count())));
}

void StreamTrace::Submit(Clock::time_point now) {
  if (running_.has_value()) running_->submitted = now;
}

std::optional<StepTrace> StreamTrace::Finish(const BatchRecord& batch, Clock::time_point now) {
  if (!running_.has_value()) return std::nullopt;
  const Running step = *running_;
  running_.reset();
  // One offset for all times: they stay in order even if the system clock is set meanwhile.
  const nanoseconds epoch = std::chrono::system_clock::now().time_since_epoch() - Clock::now().time_since_epoch();
  const auto unix_ns = [epoch](Clock::time_point time) { return (time.time_since_epoch() + epoch).count(); };
  return StepTrace{.num_envs = step.num_envs,
                   .step = step.step,
                   .batch_rows = batch.num_rows,
                   .policy_version = batch.policy_version,
                   .env_ns = nanoseconds(step.env).count(),
                   .actions_sent_ns = unix_ns(step.actions_sent),
                   .received_ns = unix_ns(step.received),
                   .submitted_ns = unix_ns(step.submitted),
                   .taken_ns = unix_ns(batch.taken),
                   .gathered_ns = unix_ns(batch.gathered),
                   .answered_ns = unix_ns(batch.answered),
                   .replied_ns = unix_ns(now)};
}

}  // namespace kubebeast
