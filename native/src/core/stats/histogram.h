// Histograms of the pool's durations and batch sizes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sync/clock.h"

namespace kubebeast {

// Upper bounds of buckets: seconds from a fast message to a step that hangs, and rows of a batch.
inline constexpr std::array<double, 20> kSecondsBounds{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3,
                                                       5e-3,  10e-3, 25e-3,  50e-3,  0.1,    0.25, 0.5,
                                                       1,     2.5,   5,      10,     30,     60};
inline constexpr std::array<double, 13> kRowsBounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

// A histogram with the buckets of Prometheus (https://prometheus.io/docs/concepts/metric_types/#histogram). Thread-safe
// and lock-free: a snapshot may contain a value in its count, but not yet in its sum.
class Histogram {
 public:
  static constexpr std::size_t kMaxBounds = 20;

  struct Snapshot {
    std::vector<double> bounds;        // upper bounds of all buckets but the last, ascending
    std::vector<std::int64_t> counts;  // of each bucket alone; the last one counts values above every bound
    double sum = 0;
  };

  // bounds: at most kMaxBounds; must outlive the histogram.
  explicit constexpr Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void Observe(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value);
    counts_[static_cast<std::size_t>(std::distance(bounds_.begin(), bucket))].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  void Observe(Clock::duration time) { Observe(std::chrono::duration<double>(time).count()); }

  double sum() const { return sum_.load(std::memory_order_relaxed); }

  Snapshot Take() const {
    Snapshot taken{{bounds_.begin(), bounds_.end()}, {}, sum()};
    for (std::size_t i = 0; i <= bounds_.size(); ++i) {
      taken.counts.push_back(counts_[i].load(std::memory_order_relaxed));
    }
    return taken;
  }

 private:
  const std::span<const double> bounds_;
  std::array<std::atomic<std::int64_t>, kMaxBounds + 1> counts_{};
  std::atomic<double> sum_ = 0;
};

// Histograms of one pool, with times in seconds.
struct Histograms {
  // A histogram that registers itself under its name. Has its own cache lines, as threads observe different values.
  struct alignas(64) Named : Histogram {
    Named(Histograms& all, std::string_view name, std::span<const double> bounds) : Histogram(bounds) {
      all.names.emplace_back(name, this);
    }
  };
  std::vector<std::pair<std::string_view, const Histogram*>> names;

  // Wait of a finished unroll until the learner took it.
  Named rollout_queue_wait{*this, "rollout_queue_wait", kSecondsBounds};
  // Time for which a full rollout queue held back a stream.
  Named stream_parked{*this, "stream_parked", kSecondsBounds};
  // Time from sent Actions to the next Observations.
  Named stream_env{*this, "stream_env", kSecondsBounds};
  // Time from Observations, or the end of parking, to sent Actions.
  Named stream_action{*this, "stream_action", kSecondsBounds};
  // Rows of a batch, not seconds.
  Named inference_batch_rows{*this, "inference_batch_rows", kRowsBounds};
  // Wait of a vector step until its batch was handed out.
  Named inference_queue_wait{*this, "inference_queue_wait", kSecondsBounds};
  // Time to gather the rows of a batch.
  Named inference_gather{*this, "inference_gather", kSecondsBounds};
  // Time from the handout of a batch to its answer.
  Named inference_model{*this, "inference_model", kSecondsBounds};
  // Time to hand the answer to the streams.
  Named inference_reply{*this, "inference_reply", kSecondsBounds};
};

}  // namespace kubebeast
