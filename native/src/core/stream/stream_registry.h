// Who is connected: live streams, the spec they agree on and the slots they hold.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Thread-safe; nothing is called with the registry locked.
class StreamRegistry {
 public:
  struct Limits {
    std::size_t max_streams = 4096;
    std::size_t max_envs = 16384;
  };

  // expected: the spec that is decided already. opening_env: the env_id that may decide it; empty: any.
  StreamRegistry(Limits limits, std::optional<EnvSpec> expected, std::string opening_env = "");

  // Lists the stream until Remove. ResourceExhausted over max_streams; Unavailable after Drain and Close, OutOfRange
  // where the run is finished.
  absl::Status Add(const std::shared_ptr<ActorStream>& stream);
  void Remove(const ActorStream* stream);
  std::vector<std::shared_ptr<ActorStream>> streams() const;

  // Accepts a Hello and takes its slots, one an environment; the first accepted Hello decides the spec.
  // FailedPrecondition when it does not fit the spec; Unavailable where the spec is not decided and the Hello may not;
  // ResourceExhausted when too few slots are free.
  absl::StatusOr<std::vector<std::int32_t>> Admit(const Hello& hello);
  void ReleaseSlots(const std::vector<std::int32_t>& slots);

  // Waits for the spec. DeadlineExceeded; Cancelled after Close.
  absl::StatusOr<EnvSpec> WaitEnvSpec(Clock::time_point deadline) const;

  // Decides the environment as the first Hello does; changes nothing where that was decided before.
  void Expect(EnvSpec spec);
  // Fixes the sizes of unrolls; from now on streams may be welcomed. FailedPrecondition without a spec or the second
  // time; Cancelled after Close.
  absl::Status Open(std::size_t unroll_length, std::size_t num_logits, std::size_t core_state_size,
                    std::vector<bool> interleaved = {}, bool single_frames = false);
  // Null before Open.
  std::shared_ptr<const UnrollShape> shape() const;

  // Refuses further streams. finished: there is nothing left to play for. Idempotent.
  void Drain(bool finished);
  // Wakes every waiter and refuses further streams. Idempotent.
  void Close();

 private:
  const Limits limits_;
  const std::string opening_env_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const ActorStream*, std::weak_ptr<ActorStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::optional<EnvSpec> spec_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const UnrollShape> shape_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::int32_t> free_slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
