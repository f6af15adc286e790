// What the streams of a pool share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "bearer_token.h"
#include "dynamic_batcher.h"
#include "inference_batch.h"
#include "offences.h"
#include "pool_events.h"
#include "recent.h"
#include "rollout_queue.h"
#include "stats.h"
#include "step_trace.h"
#include "stream_registry.h"
#include "tls.h"
#include "wire_codec.h"

namespace kubebeast {

// The arguments of ActorPool in _core.pyi.
struct PoolOptions {
  std::string address;  // empty: the pool only dials
  std::string run_id;
  std::size_t unroll_length = 0;
  std::size_t batch_size = 0;
  BatchingOptions inference;
  std::size_t max_queued_rollouts = 0;  // 0: 2 * batch_size
  std::size_t max_streams = 4096;
  std::size_t max_envs = 16384;
  WireLimits wire;
  std::size_t min_partial_steps = 1;
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds step_timeout{60'000};
  std::optional<EnvSpec> expected;
  std::size_t max_offences = 20;  // of a host; 0: any number
  TlsOptions tls;
  std::string token_file;
};

// How soon a host is forgiven one offence.
inline constexpr std::chrono::seconds kOffenceForgivenEvery{3};

// Lives until the last stream and the last inference batch are gone, which may be after the pool. Locks: a stream locks
// itself, then at most one of these members; the members call no one while they are locked.
struct PoolContext {
  explicit PoolContext(const PoolOptions& pool_options)
      : options(pool_options),
        stats(std::make_shared<Stats>()),
        registry({options.max_streams, options.max_envs, options.wire.max_message_bytes}, options.expected),
        batcher(options.inference),
        rollouts(options.max_queued_rollouts, options.min_partial_steps, stats),
        token(options.token_file) {}

  // A peer that was turned away before it had said who it is.
  void AddRefusal(std::string peer, const absl::Status& status) {
    if (absl::IsUnauthenticated(status)) offences.Add(HostOfPeer(peer), Offences::Clock::now());
    events.Add({.kind = StreamEvent::Kind::kRefused,
                .peer = std::move(peer),
                .reason = absl::StatusCodeToString(status.code()),
                .detail = std::string(status.message())});
  }

  const PoolOptions options;
  const std::shared_ptr<Stats> stats;
  StreamRegistry registry;
  DynamicBatcher<PendingStep> batcher;
  RolloutQueue rollouts;
  const BearerToken token;
  Offences offences{options.max_offences, kOffenceForgivenEvery};
  Recent<Episode> episodes{kMaxEpisodes};
  Recent<StreamEvent> events{kMaxStreamEvents};
  TraceRequest trace_request;
  Recent<StepTrace> traces{kMaxStepTraces};
};

}  // namespace kubebeast
