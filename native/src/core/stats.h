// What the pool counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kubebeast {

// Counters and gauges of one pool. Every sampled step is counted once: at any quiescent moment
// steps_sampled == steps_delivered + steps_dropped_partial + steps_dropped_close + steps_in_flight.
struct Stats {
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
  Value streams_rejected{0};  // refused before acceptance: limits, version, specs, bad or missing Hello

  // Messages.
  Value messages_received{0};
  Value bytes_received{0};
  Value bytes_sent{0};
  Value rows_received{0};

  // Steps (valid transitions) and unrolls.
  Value steps_sampled{0};
  Value steps_delivered{0};
  Value steps_dropped_partial{0};  // in unrolls shorter than min_partial_steps
  Value steps_dropped_close{0};
  Value rollouts_completed{0};
  Value rollouts_partial{0};

  // Inference.
  Value inference_batches{0};
  Value inference_rows{0};
  Value inference_flush_ready{0};
  Value inference_flush_all{0};
  Value inference_flush_timeout{0};
  Value inference_dropped{0};  // batches that were never answered

  Value episodes{0};

  // Every value with its name.
  std::vector<std::pair<std::string_view, std::int64_t>> Snapshot() const;
};

}  // namespace kubebeast
