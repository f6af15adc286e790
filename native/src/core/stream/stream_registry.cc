#include "stream/stream_registry.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rollouts/frame_stack.h"
#include "wire/env_id.h"

namespace kubebeast {
namespace {

// Refused specs that are remembered, and refused again without a trial.
constexpr std::size_t kMaxRefusedSpecs = 64;

}  // namespace

StreamRegistry::StreamRegistry(Limits limits, std::optional<EnvSpec> expected, std::string opening_env)
    : limits_(limits),
      is_expected_(expected.has_value()),
      opening_env_(std::move(opening_env)),
      spec_(std::move(expected)),
      free_slots_(limits.max_envs) {
  std::iota(free_slots_.begin(), free_slots_.end(), 0);  // a heap, as it is sorted
}

absl::Status StreamRegistry::Add(const std::shared_ptr<ActorStream>& stream) {
  const MutexLock lock(mutex_);
  if (finished_) return absl::OutOfRangeError("the run is finished");
  if (draining_) return absl::UnavailableError("the learner is shutting down");
  if (streams_.size() >= limits_.max_streams) {
    return absl::ResourceExhaustedError(absl::StrCat("the learner has its ", limits_.max_streams, " streams already"));
  }
  streams_.emplace(stream.get(), stream);
  return absl::OkStatus();
}

void StreamRegistry::Remove(const ActorStream* stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
}

std::vector<std::shared_ptr<ActorStream>> StreamRegistry::streams() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ActorStream>> result;
  result.reserve(streams_.size());
  for (const auto& [key, listed] : streams_) {
    if (auto stream = listed.lock()) result.push_back(std::move(stream));
  }
  return result;
}

absl::StatusOr<std::vector<std::int32_t>> StreamRegistry::Admit(const Hello& hello) {
  const MutexLock lock(mutex_);
  if (closed_) return absl::UnavailableError("the learner is shutting down");
  if (absl::Status status = CheckSpec(hello.spec); !status.ok()) return status;
  if (free_slots_.size() < hello.num_envs) {
    return absl::ResourceExhaustedError(absl::StrCat("num_envs ", hello.num_envs, " does not fit: ", free_slots_.size(),
                                                     " of ", limits_.max_envs, " environments are free"));
  }
  if (!spec_.has_value()) {
    spec_ = hello.spec;
    changed_.NotifyAll();
  }
  std::vector<std::int32_t> slots(hello.num_envs);
  for (std::int32_t& slot : slots) {
    std::pop_heap(free_slots_.begin(), free_slots_.end(), std::greater<>());
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  return slots;
}

absl::Status StreamRegistry::CheckSpec(const EnvSpec& spec) const {
  if (spec_.has_value()) {
    absl::Status status = CheckCompatible(*spec_, spec);
    const bool is_on_trial = shape_ == nullptr && !is_expected_ && opening_env_.empty();
    if (status.ok() || !is_on_trial) return status;
    return absl::UnavailableError(
        absl::StrCat("the learner is trying the environment of another env-server, ", status.message()));
  }
  if (!opening_env_.empty() && PlainEnvId(spec.env_id) != PlainEnvId(opening_env_)) {
    return absl::UnavailableError(
        absl::StrCat("the run waits for its first env-server of ", opening_env_, ", this one has ", spec.env_id));
  }
  for (const RefusedSpec& refused : refused_) {
    if (CheckCompatible(refused.spec, spec).ok()) return absl::FailedPreconditionError(refused.reason);
  }
  return absl::OkStatus();
}

void StreamRegistry::ReleaseSlots(const std::vector<std::int32_t>& slots) {
  const MutexLock lock(mutex_);
  for (const std::int32_t slot : slots) {
    free_slots_.push_back(slot);
    std::push_heap(free_slots_.begin(), free_slots_.end(), std::greater<>());
  }
}

absl::StatusOr<EnvSpec> StreamRegistry::WaitEnvSpec(Clock::time_point deadline) const {
  const MutexLock lock(mutex_);
  while (!closed_ && !spec_.has_value() && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (closed_) return absl::CancelledError("closed");
  if (!spec_.has_value()) return absl::DeadlineExceededError("no env-server has introduced itself");
  return *spec_;
}

void StreamRegistry::Expect(EnvSpec spec) {
  const MutexLock lock(mutex_);
  if (spec_.has_value()) return;
  spec_ = std::move(spec);
  changed_.NotifyAll();
}

absl::StatusOr<EnvSpec> StreamRegistry::Refuse(const std::string& reason) {
  const MutexLock lock(mutex_);
  if (!spec_.has_value() || shape_ != nullptr || is_expected_) {
    return absl::FailedPreconditionError("no environment is on trial");
  }
  EnvSpec spec = *std::exchange(spec_, std::nullopt);
  refused_.push_back({spec, reason});
  if (refused_.size() > kMaxRefusedSpecs) refused_.pop_front();
  return spec;
}

absl::Status StreamRegistry::Open(std::size_t unroll_length, std::size_t num_logits, std::size_t core_state_size,
                                  std::vector<bool> interleaved, bool single_frames) {
  const MutexLock lock(mutex_);
  if (closed_) return absl::CancelledError("closed");
  if (!spec_.has_value()) return absl::FailedPreconditionError("open needs an EnvSpec: wait_env_spec first");
  if (shape_ != nullptr) return absl::FailedPreconditionError("the pool was opened before");
  if (interleaved.empty()) interleaved.resize(spec_->observation.size());
  absl::Status status = CheckInterleaved(interleaved, spec_->observation);
  if (!status.ok()) return status;
  if (single_frames && std::find(interleaved.begin(), interleaved.end(), true) != interleaved.end()) {
    return absl::InvalidArgumentError("single_frames is true, and so is interleaved: frames alone have no such order");
  }
  shape_ = std::make_shared<const UnrollShape>(
      UnrollShape{*spec_, unroll_length, num_logits, core_state_size, std::move(interleaved), single_frames});
  return absl::OkStatus();
}

std::shared_ptr<const UnrollShape> StreamRegistry::shape() const {
  const MutexLock lock(mutex_);
  return shape_;
}

void StreamRegistry::Drain(bool finished) {
  const MutexLock lock(mutex_);
  draining_ = true;
  finished_ = finished_ || finished;
}

void StreamRegistry::Close() {
  const MutexLock lock(mutex_);
  draining_ = true;
  closed_ = true;
  changed_.NotifyAll();
}

}  // namespace kubebeast
