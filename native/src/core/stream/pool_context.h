// State shared by the streams of a pool.
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
#include "access/host_rates.h"
#include "access/offences.h"
#include "access/tls.h"
#include "door/connection_refusal.h"
#include "door/front_door.h"
#include "inference/dynamic_batcher.h"
#include "inference/inference_batch.h"
#include "inference/step_trace.h"
#include "options/options_queue.h"
#include "rollouts/rollout_queue.h"
#include "stats/recent.h"
#include "stats/stats.h"
#include "stream/pool_events.h"
#include "stream/repetitions.h"
#include "stream/stream_registry.h"
#include "stream/tasks.h"
#include "wire/protocol.h"

namespace kubebeast {

// Unless max_queued_rollouts is set, at most this many batches of unrolls may wait or be played: a bound on the age of
// the data in updates. The cost of older data was measured (docs/design/transport.md).
inline constexpr std::size_t kMaxBatchesAhead = 8;

// The arguments of ActorPool in _core.pyi.
struct PoolOptions {
  std::string address;  // if empty, the pool only dials
  std::string run_id;
  std::size_t unroll_length = 0;  // if 0, there are no rollouts
  std::size_t batch_size = 0;
  BatchingOptions inference;
  std::size_t max_queued_rollouts = 0;  // 0: one per environment plus two batches, at most kMaxBatchesAhead batches
  std::size_t max_streams = 4096;
  std::size_t max_envs = 16384;
  bool keep_surplus = false;  // streams over max_envs wait until they fit
  WireLimits wire;
  std::size_t max_transport_bytes = 0;  // 0: Create uses 1 GiB, or 16 * max_message_bytes if that is more
  std::size_t min_partial_steps = 1;
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds step_timeout{60'000};
  std::optional<EnvSpec> expected;
  std::string opening_env;            // if empty, any
  std::vector<TaskShare> tasks;       // if empty, every env_id is one task
  std::vector<std::string> log_info;  // keys of the environments' info that come with every episode
  bool episode_options = false;       // environments are reset with options out of a queue
  bool opponents = false;             // all agents of an environment but one are played by opponents
  bool turns = true;                  // agents may take turns
  std::size_t max_offences = 20;      // per host; 0: any number
  TlsOptions tls;
  std::string token_file;

  bool has_rollouts() const { return unroll_length > 0; }
  QueueCapacity rollout_capacity() const {
    if (max_queued_rollouts > 0) return {.spare = max_queued_rollouts, .most = max_queued_rollouts};
    return {.spare = 2 * batch_size, .most = kMaxBatchesAhead * batch_size};
  }
};

// Time until one offence of a host is forgiven.
inline constexpr std::chrono::milliseconds kOffenceForgivenEvery{3000};

// Shared state that is destroyed after the last stream and the last inference batch, possibly after the pool. Locks: a
// stream locks itself, then at most one of these members; the members call no other code while they are locked.
struct PoolContext {
  explicit PoolContext(const PoolOptions& pool_options)
      : options(pool_options),
        stats(std::make_shared<Stats>()),
        tasks(options.tasks),
        registry({options.max_streams, options.max_envs}, options.expected, options.opening_env),
        batcher(options.inference),
        rollouts(options.rollout_capacity(), options.min_partial_steps, stats, tasks.weights()),
        episode_options(stats),
        token(options.token_file),
        door({.patience = options.handshake_timeout, .tls = options.tls.enabled()},
             {.on_refusal = [this](const std::string& peer,
                                   const ConnectionRefusal& refusal) { AddRefusedConnection(peer, refusal); },
              .is_suspect = [this](const std::string& peer) { return offences.Has(HostOfPeer(peer), Clock::now()); }}) {
    if (options.max_transport_bytes > 0) transport_memory.emplace().Resize(options.max_transport_bytes);
  }

  // Records that a peer broke a rule: too many of these block its host.
  void AddOffence(const std::string& peer);
  // Returns true if connections of the peer's host must wait.
  bool Blocks(const std::string& peer);
  // Records a peer that was turned away before its Hello.
  void AddRefusal(const std::string& peer, const absl::Status& status);
  // Records a connection that brings no stream. A flood adds only one event now and then per host and reason; probes of
  // the port are only counted.
  void AddRefusedConnection(const std::string& peer, const ConnectionRefusal& refusal);
  // Records that no connection can be accepted at the moment.
  void AddAcceptFailure(const absl::Status& status);

  const PoolOptions options;
  const std::shared_ptr<Stats> stats;
  const Tasks tasks;
  StreamRegistry registry;
  DynamicBatcher<PendingStep> batcher;
  RolloutQueue rollouts;
  OptionsQueue episode_options;
  const BearerToken token;
  std::optional<grpc::ResourceQuota> transport_memory;  // of all connections, either way; nullopt: unbounded
  Offences offences{options.max_offences, kOffenceForgivenEvery};
  // Offences of all hosts together: above this number every new connection has to wait.
  Offences all_offences{8 * options.max_offences, kOffenceForgivenEvery / 8};
  // Events that are offences above a rate. Probes come once a second, or a few times if there are several of them.
  HostRates short_calls{50, 10};
  HostRates unknown_methods{20, 2};
  HostRates cancelled_calls{20, 2};
  HostRates short_connections{20, 2};
  HostRates refusals{100, 5};
  Repetitions repetitions;  // repetitions of events that recur without end
  Recent<Episode> episodes{kMaxEpisodes};
  Recent<StreamEvent> events{kMaxStreamEvents};
  TraceRequest trace_request;
  Recent<StepTrace> traces{kMaxStepTraces};
  FrontDoor door;  // last member: its thread uses the others
};

}  // namespace kubebeast
