// Traces of single vector steps, recorded on request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "inference/inference_batch.h"
#include "wire/observation_rows.h"

namespace kubebeast {

// StepTrace of _core.pyi: one vector step from the Actions that started it to those that answer it. The times are
// nanoseconds since the Unix epoch, in ascending order.
struct StepTrace {
  std::string env_server_id;
  std::string instance_id;
  std::string env_id;
  std::size_t num_envs = 0;
  std::uint64_t step = 0;
  std::size_t batch_rows = 0;
  std::int64_t policy_version = 0;
  std::int64_t env_ns = 0;  // time in the environments, as reported by the env-server; 0: not reported

  std::int64_t actions_sent_ns = 0;  // actions of the previous step, to the transport
  std::int64_t received_ns = 0;      // the observations
  std::int64_t submitted_ns = 0;     // to the batcher: later than received_ns if the stream was parked
  std::int64_t taken_ns = 0;         // with its batch, by an inference thread
  std::int64_t gathered_ns = 0;
  std::int64_t answered_ns = 0;  // by the model
  std::int64_t replied_ns = 0;   // its actions sent
};

inline constexpr std::size_t kMaxStepTraces = 256;

// A request to trace one step of the next stream. Thread-safe; never blocks.
class TraceRequest {
 public:
  // Makes the request; a second one before a stream has taken the first has no effect.
  void Make() { made_.store(true, std::memory_order_relaxed); }

  // Returns true if the caller's next step is to be traced. A single load if there is no request.
  bool Take() { return made_.load(std::memory_order_relaxed) && made_.exchange(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> made_ = false;
};

// The trace of one step of a stream; without Begin the methods do nothing. Not thread-safe.
class StreamTrace {
 public:
  void Begin(Clock::time_point now) { running_ = Running{.actions_sent = now}; }
  void Receive(const ObservationRows& rows, Clock::time_point now);
  void Submit(Clock::time_point now);
  // Ends the trace and returns it without the names of its stream; nullopt if none was begun.
  std::optional<StepTrace> Finish(const BatchRecord& batch, Clock::time_point now);

 private:
  struct Running {
    Clock::time_point actions_sent;
    Clock::time_point received;
    Clock::time_point submitted;
    std::chrono::microseconds env{0};
    std::uint64_t step = 0;
    std::size_t num_envs = 0;
  };
  std::optional<Running> running_;
};

}  // namespace kubebeast
