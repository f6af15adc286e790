// What the streams of a pool share.
#pragma once

#include <grpcpp/resource_quota.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "access/bearer_token.h"
#include "access/connection_refusal.h"
#include "access/newcomers.h"
#include "access/offences.h"
#include "access/tls.h"
#include "inference/dynamic_batcher.h"
#include "inference/inference_batch.h"
#include "inference/step_trace.h"
#include "rollouts/rollout_queue.h"
#include "stats/recent.h"
#include "stats/stats.h"
#include "stream/pool_events.h"
#include "stream/repetitions.h"
#include "stream/stream_registry.h"
#include "stream/tasks.h"
#include "wire/protocol.h"

namespace kubebeast {

// Unless max_queued_rollouts says it, unrolls for so many batches at most may wait or be played: the age of the data in
// updates, and what older data cost was measured (docs/decisions.md).
inline constexpr std::size_t kMaxBatchesAhead = 8;

// The arguments of ActorPool in _core.pyi.
struct PoolOptions {
  std::string address;  // empty: the pool only dials
  std::string run_id;
  std::size_t unroll_length = 0;  // 0: no rollouts
  std::size_t batch_size = 0;
  BatchingOptions inference;
  std::size_t max_queued_rollouts = 0;  // 0: one an environment and two batches, at most kMaxBatchesAhead batches
  std::size_t max_streams = 4096;
  std::size_t max_envs = 16384;
  bool keep_surplus = false;  // streams over max_envs wait until they fit
  WireLimits wire;
  std::size_t max_transport_bytes = 0;  // 0: Create takes 1 GiB, or 16 * max_message_bytes where that is more
  std::size_t min_partial_steps = 1;
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds step_timeout{60'000};
  std::optional<EnvSpec> expected;
  std::string opening_env;        // empty: any
  std::vector<TaskShare> tasks;   // empty: every env_id is one task
  std::size_t max_offences = 20;  // of a host; 0: any number
  TlsOptions tls;
  std::string token_file;

  bool has_rollouts() const { return unroll_length > 0; }
  QueueCapacity rollout_capacity() const {
    if (max_queued_rollouts > 0) return {.spare = max_queued_rollouts, .most = max_queued_rollouts};
    return {.spare = 2 * batch_size, .most = kMaxBatchesAhead * batch_size};
  }
};

// How soon a host is forgiven one offence.
inline constexpr std::chrono::seconds kOffenceForgivenEvery{3};

// Lives until the last stream and the last inference batch are gone, which may be after the pool. Locks: a stream locks
// itself, then at most one of these members; the members call no one while they are locked.
struct PoolContext {
  explicit PoolContext(const PoolOptions& pool_options)
      : options(pool_options),
        stats(std::make_shared<Stats>()),
        tasks(options.tasks),
        registry({options.max_streams, options.max_envs}, options.expected, options.opening_env),
        batcher(options.inference),
        rollouts(options.rollout_capacity(), options.min_partial_steps, stats, tasks.weights()),
        token(options.token_file) {
    if (options.max_transport_bytes > 0) transport_memory.emplace().Resize(options.max_transport_bytes);
  }

  // A peer that was turned away before it had said who it is.
  void AddRefusal(const std::string& peer, const absl::Status& status);
  // A connection that brings no stream. An event now and then for each host and reason, whoever floods; probes of the
  // port are only counted.
  void AddRefusedConnection(const std::string& peer, const ConnectionRefusal& refusal);
  // No connection can be accepted at the moment.
  void AddAcceptFailure(const absl::Status& status);

  const PoolOptions options;
  const std::shared_ptr<Stats> stats;
  const Tasks tasks;
  StreamRegistry registry;
  DynamicBatcher<PendingStep> batcher;
  RolloutQueue rollouts;
  const BearerToken token;
  std::optional<grpc::ResourceQuota> transport_memory;  // of all connections, whoever dialled; none: unbounded
  Offences offences{options.max_offences, kOffenceForgivenEvery};
  Newcomers newcomers{options.handshake_timeout};
  Repetitions repetitions;  // of events that have no end
  Recent<Episode> episodes{kMaxEpisodes};
  Recent<StreamEvent> events{kMaxStreamEvents};
  TraceRequest trace_request;
  Recent<StepTrace> traces{kMaxStepTraces};
};

}  // namespace kubebeast
