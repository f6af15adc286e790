// What the pool counts.
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
 public:
  using Value = std::atomic<std::int64_t>;

  // Gauges.
  Value streams{0};          // accepted and not ended
  Value envs{0};             // of these streams
  Value steps_in_flight{0};  // valid transitions in started and queued unrolls

  // Streams. An accepted one ends by Bye, by disconnection, as invalid, by timeout, by a dropped batch or by close.
  Value streams_accepted{0};
  Value streams_ended_bye{0};
  Value streams_ended_disconnect{0};
  Value streams_ended_invalid{0};
  Value streams_ended_timeout{0};
  Value streams_ended_dropped{0};
  Value streams_ended_closed{0};
  Value streams_rejected{0};         // refused before acceptance: limits, version, specs, bad or missing Hello
  Value streams_unauthenticated{0};  // refused for their token
  Value dials_failed{0};             // to env-servers that listen

  // Connections that brought no stream; see ConnectionRefusal.
  Value connections_blocked{0};
  Value connections_closed{0};
  Value connections_silent{0};
  Value connections_plaintext{0};
  Value connections_tls{0};
  Value connections_garbage{0};
  Value connections_no_call{0};

  // Messages.
  Value messages_received{0};
  Value bytes_received{0};
  Value bytes_sent{0};
  Value rows_received{0};
  Value env_interruptions{0};  // environments that failed in the middle of an episode

  // Steps (valid transitions) and unrolls. Steps change by the methods below only.
  Value steps_sampled{0};
  Value steps_delivered{0};
  Value steps_dropped_partial{0};  // in unrolls shorter than min_partial_steps
  Value steps_dropped_stale{0};    // in unrolls older than min_policy_version
  Value steps_dropped_close{0};
  Value rollouts_completed{0};
  Value rollouts_partial{0};
  Value rollouts_dropped_partial{0};
  Value rollouts_dropped_stale{0};
  Value rollouts_delivered{0};
  Value rollout_padded_steps{0};  // places without a step in delivered unrolls

  // Inference.
  Value inference_batches{0};
  Value inference_rows{0};
  Value inference_flush_ready{0};
  Value inference_flush_all{0};
  Value inference_flush_timeout{0};
  Value inference_dropped{0};  // batches that were never answered

  Value episodes{0};

  Histograms histograms;

  // Counts steps of a started unroll.
  void CountSampled(std::size_t steps);
  // Moves steps from in flight to where they ended.
  void CountLeaving(std::size_t steps, Value& where);

  // Every value with its name.
  std::vector<std::pair<std::string_view, std::int64_t>> Snapshot() const;
  // Every histogram with its name.
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> TakeHistograms() const;

 private:
  mutable Mutex books_mutex_;  // while steps move from one value to another
};

}  // namespace kubebeast
