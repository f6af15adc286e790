// Queue of the options of coming episodes, between the learner's curriculum and the streams.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stats/stats.h"
#include "sync/mutex.h"
#include "wire/learner_texts.h"

namespace kubebeast {

// A queue with a place for each environment of the pool, so that all episodes may end at once. Thread-safe. Streams
// run in transport threads, so Take never blocks; Close wakes WaitForRoom.
class OptionsQueue {
 public:
  // Number of places while there are fewer environments.
  static constexpr std::size_t kMinPlaces = 32;

  explicit OptionsQueue(std::shared_ptr<const Stats> stats) : stats_(std::move(stats)) {}

  // Adds the options of further episodes, even beyond the places. Returns InvalidArgument for the first text that a
  // message must not hold; none is added then.
  absl::Status Push(const std::vector<std::string>& texts);

  // Blocks until at least half of the places are free, and returns their number. A curriculum that fills single places
  // would wake up at the end of every episode. Returns DeadlineExceeded, and Cancelled after Close.
  absl::StatusOr<std::size_t> WaitForRoom(Clock::time_point deadline);

  // Removes and returns the oldest options; null if there are none.
  OptionsText Take();

  // Returns the newest options that were added; null if there were never any.
  OptionsText newest() const;

  // Idempotent.
  void Close();

 private:
  std::size_t NumFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const Stats> stats_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<OptionsText> texts_ ABSL_GUARDED_BY(mutex_);
  OptionsText newest_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kubebeast
