// Registry of the live streams, their common spec and their slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollouts/unroll.h"
#include "sync/mutex.h"
#include "wire/handshake_codec.h"

namespace kubebeast {

class ActorStream;

// The registry of a pool. Thread-safe; it calls no other code with its lock held.
class StreamRegistry {
 public:
  struct Limits {
    std::size_t max_streams = 4096;
    std::size_t max_envs = 16384;
  };

  // expected: the spec, if decided already. opening_env: the env_id that may decide it; if empty, any.
  StreamRegistry(Limits limits, std::optional<EnvSpec> expected, std::string opening_env = "");

  // Lists the stream until Remove. Returns ResourceExhausted over max_streams; Unavailable after Drain and Close, or
  // OutOfRange if the run is finished.
  absl::Status Add(const std::shared_ptr<ActorStream>& stream);
  void Remove(const ActorStream* stream);
  std::vector<std::shared_ptr<ActorStream>> streams() const;

  // Accepts a Hello and takes its slots, one per environment; the first accepted Hello decides the spec, on trial until
  // Open. Returns FailedPrecondition if it does not fit the spec, or its leaves were refused before; Unavailable if the
  // spec is undecided and this Hello may not decide it, or differs from a spec on trial; ResourceExhausted if too few
  // slots are free.
  absl::StatusOr<std::vector<std::int32_t>> Admit(const Hello& hello);
  void ReleaseSlots(const std::vector<std::int32_t>& slots);

  // Blocks until the spec is decided. Returns DeadlineExceeded after the deadline and Cancelled after Close.
  absl::StatusOr<EnvSpec> WaitEnvSpec(Clock::time_point deadline) const;

  // Decides the spec as the first Hello does; does nothing if it was decided before.
  void Expect(EnvSpec spec);
  // Discards and returns the spec that the first Hello decided, as the learner has no model for its leaves, for the
  // given `reason`. Returns FailedPrecondition if no spec is on trial.
  absl::StatusOr<EnvSpec> Refuse(const std::string& reason);
  // Fixes the sizes of unrolls; from now on streams may be welcomed. Returns FailedPrecondition without a spec or if
  // called before; Cancelled after Close.
  absl::Status Open(std::size_t unroll_length, std::size_t num_logits, std::size_t core_state_size,
                    std::vector<bool> interleaved = {}, bool single_frames = false);
  // Returns null before Open.
  std::shared_ptr<const UnrollShape> shape() const;

  // Refuses further streams. finished: the run has no more steps to play. Idempotent.
  void Drain(bool finished);
  // Wakes every waiter and refuses further streams. Idempotent.
  void Close();

 private:
  struct RefusedSpec {
    EnvSpec spec;
    std::string reason;
  };

  absl::Status CheckSpec(const EnvSpec& spec) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  const bool is_expected_;
  const std::string opening_env_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const ActorStream*, std::weak_ptr<ActorStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::optional<EnvSpec> spec_ ABSL_GUARDED_BY(mutex_);
  std::deque<RefusedSpec> refused_ ABSL_GUARDED_BY(mutex_);  // the newest kMaxRefusedSpecs
  std::shared_ptr<const UnrollShape> shape_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::int32_t> free_slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
