// Counters and gauges of the pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stats/histogram.h"
#include "sync/mutex.h"

namespace kubebeast {

// Counters and gauges of one pool. Every sampled step is counted once, and every snapshot balances:
// steps_sampled == steps_delivered + steps_dropped_partial + steps_dropped_stale + steps_dropped_close +
// steps_in_flight. Thread-safe.
class Stats {
  std::vector<std::pair<std::string_view, const std::atomic<std::int64_t>*>> values_;

 public:
  // A value that registers itself under its name, so a new one needs only a declaration. It has a cache line of its
  // own, as different threads change different values.
  class alignas(64) Value : public std::atomic<std::int64_t> {
   public:
    Value(Stats& stats, std::string_view name) : atomic(0) { stats.values_.emplace_back(name, this); }
    using atomic::operator=;
  };

  // Gauges.
  Value streams{*this, "streams"};  // accepted and not ended
  Value envs{*this, "envs"};        // environments of these streams
  Value streams_in_reserve{*this, "streams_in_reserve"};
  Value steps_in_flight{*this, "steps_in_flight"};  // valid transitions in started and queued unrolls

  // Streams. An accepted one ends by Bye, disconnection, an invalid message, a timeout, a dropped batch or close.
  Value streams_accepted{*this, "streams_accepted"};
  Value streams_ended_bye{*this, "streams_ended_bye"};
  Value streams_ended_disconnect{*this, "streams_ended_disconnect"};
  Value streams_ended_invalid{*this, "streams_ended_invalid"};
  Value streams_ended_timeout{*this, "streams_ended_timeout"};
  Value streams_ended_dropped{*this, "streams_ended_dropped"};
  Value streams_ended_closed{*this, "streams_ended_closed"};
  // Refused before acceptance: limits, version, specs, bad or missing Hello.
  Value streams_rejected{*this, "streams_rejected"};
  Value streams_unauthenticated{*this, "streams_unauthenticated"};  // refused for their token
  Value dials_failed{*this, "dials_failed"};                        // dials of env-servers that listen

  // Connections without a stream; see ConnectionRefusal.
  Value connections_blocked{*this, "connections_blocked"};
  Value connections_closed{*this, "connections_closed"};
  Value connections_silent{*this, "connections_silent"};
  Value connections_plaintext{*this, "connections_plaintext"};
  Value connections_tls{*this, "connections_tls"};
  Value connections_garbage{*this, "connections_garbage"};
  Value connections_no_call{*this, "connections_no_call"};
  Value connections_bytes{*this, "connections_bytes"};
  Value connections_calls{*this, "connections_calls"};
  Value connections_crowded{*this, "connections_crowded"};

  // Messages.
  Value messages_received{*this, "messages_received"};
  Value bytes_received{*this, "bytes_received"};
  Value bytes_sent{*this, "bytes_sent"};
  Value rows_received{*this, "rows_received"};
  Value env_interruptions{*this, "env_interruptions"};  // environments that failed in the middle of an episode

  // Steps (valid transitions) and unrolls. Only the methods below change steps.
  Value opponent_steps{*this, "opponent_steps"};  // valid transitions of opponents, no part of the balance
  Value steps_sampled{*this, "steps_sampled"};
  Value steps_delivered{*this, "steps_delivered"};
  Value steps_dropped_partial{*this, "steps_dropped_partial"};  // in unrolls shorter than min_partial_steps
  Value steps_dropped_stale{*this, "steps_dropped_stale"};      // in unrolls older than min_policy_version
  Value steps_dropped_close{*this, "steps_dropped_close"};
  Value rollouts_completed{*this, "rollouts_completed"};
  Value rollouts_partial{*this, "rollouts_partial"};
  Value rollouts_dropped_partial{*this, "rollouts_dropped_partial"};
  Value rollouts_dropped_stale{*this, "rollouts_dropped_stale"};
  Value rollouts_delivered{*this, "rollouts_delivered"};
  Value rollout_padded_steps{*this, "rollout_padded_steps"};  // places without a step in delivered unrolls

  // Inference.
  Value inference_batches{*this, "inference_batches"};
  Value inference_rows{*this, "inference_rows"};
  Value inference_flush_ready{*this, "inference_flush_ready"};
  Value inference_flush_all{*this, "inference_flush_all"};
  Value inference_flush_timeout{*this, "inference_flush_timeout"};
  Value inference_dropped{*this, "inference_dropped"};  // batches that were never answered

  // Options of episodes. Those that were due while the queue of options was empty are the newest ones again.
  Value options_sent{*this, "options_sent"};
  Value options_repeated{*this, "options_repeated"};

  Value episodes{*this, "episodes"};

  Histograms histograms;

  // Counts steps of a started unroll.
  void CountSampled(std::size_t steps);
  // Moves steps from in flight to the counter of their end.
  void CountLeaving(std::size_t steps, Value& where);

  // Returns every value with its name.
  std::vector<std::pair<std::string_view, std::int64_t>> Snapshot() const;
  // Returns every histogram with its name.
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> TakeHistograms() const;

 private:
  mutable Mutex books_mutex_;  // held while steps move from one value to another
};

}  // namespace kubebeast
