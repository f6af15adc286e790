// The learner's end of one env-server's stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "calls/message.h"
#include "calls/transport.h"
#include "inference/inference_batch.h"
#include "inference/step_trace.h"
#include "options/stream_options.h"
#include "rollouts/seats.h"
#include "stats/stream_clock.h"
#include "stream/end_cause.h"
#include "stream/exchange.h"
#include "stream/interruptions.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"
#include "wire/handshake_codec.h"
#include "wire/wire_codec.h"

namespace kubebeast {

// State machine of the protocol with one peer:
//
//     Hello → (reserve) → accepted → (pool opens) → Welcome → [ Observations → rollout, batcher → Actions ]* → end
//
// During inference nothing is read: the next Observations are requested together with the Actions that they answer.
// There are exceptions, in which the stream reads and so receives a Bye, or messages of a peer that does not wait for
// its Actions: after its first step, while parked, and once the model has taken long. Step 0 of an unroll is parked
// while the rollout queue is full, and so is a step after so long a silence that other streams took the room in the
// queue. The transport owns the stream until its end; after that it lives as long as an answer to it is
// outstanding, and its slots are free once it is destroyed. Thread-safe.
class ActorStream final : public Actor, public std::enable_shared_from_this<ActorStream> {
 public:
  ActorStream(std::shared_ptr<PoolContext> pool, Transport& transport, std::string peer);
  ~ActorStream() override;

  // Registers the stream and begins to read, or refuses it. Called once.
  void Start();

  // Welcomes an accepted stream; the pool must be open.
  void OnPoolOpen();

  // Ends a stream that waits for the pool to open, if it has the leaves of `spec`: FAILED_PRECONDITION with the reason.
  void Refuse(const EnvSpec& spec, const std::string& reason);

  // Ends the stream if its peer has exceeded the timeout, and cancels it if the peer does not take its status; accepts
  // a stream in the reserve if it fits by now; begins to read if a step waits for long.
  void CheckDeadline(Clock::time_point now);

  // Ends the stream with UNAVAILABLE; its started unroll counts as dropped.
  void Close();

  // Returns nullopt unless the Hello was accepted and the stream has not ended.
  std::optional<StreamInfo> Describe(Clock::time_point now);

  const std::vector<std::int32_t>& slots() const override { return slots_; }
  void Act(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state,
           const BatchRecord& batch) override;
  void Abandon() override;

  // Events of the transport, which is destroyed after the last one. OnRead: no message if the peer sends nothing more.
  // OnPeerGone: the call is over, even if nothing is being read or written.
  void OnRead(Message message);
  void OnWritten(bool ok);
  void OnPeerGone();
  void OnDone();

  // Returns true if the Hello was accepted. For the transport's last event and later.
  bool accepted() const { return !slots_.empty(); }

 private:
  // The event that the stream waits for: its start, the peer's Hello, free slots, the opening of the pool, the peer's
  // next step, the model's actions, or none after its end.
  enum class Phase { kStart, kHello, kReserve, kOpen, kStep, kActions, kEnded };

  void Unpark();

  absl::Status Receive(const Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReceiveHello(Hello hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns ResourceExhausted while the stream does not fit.
  absl::Status Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveReserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReceiveStep(std::shared_ptr<const ObservationRows> observation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Welcome(std::shared_ptr<const UnrollShape> shape) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the received step and adds it to the unrolls of those seats that act.
  void AddStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the received step, and submits it unless it needs room that there is not.
  void TakeStep(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if the stream must wait for room in the rollout queue; Unpark runs once there is some.
  bool Park() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Submits the newest step to the batcher.
  void Submit(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the finished episodes of the received step, except those of opponents.
  void AddEpisodes(const ObservationRows& rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishTrace(const BatchRecord& batch, Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitPeer(Phase phase, std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const EndCause& cause, const absl::Status& status, bool terminated = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountEnd(const EndCause& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportEnd(const EndCause& cause, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report(StreamEvent::Kind kind, std::string reason, std::string detail, std::string env_config = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<PoolContext> pool_;
  const std::string peer_;
  const Clock::time_point connected_at_;
  std::vector<std::int32_t> slots_;  // set once, by acceptance: later events read it without a lock

  Mutex mutex_;
  Transport* transport_ ABSL_GUARDED_BY(mutex_);  // null after its last event
  Exchange exchange_ ABSL_GUARDED_BY(mutex_);     // used until the end
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStart;
  // Deadline of the peer for its Hello, its next step or taking the status; of the model, after which the stream reads.
  Clock::time_point deadline_ ABSL_GUARDED_BY(mutex_);

  Hello hello_ ABSL_GUARDED_BY(mutex_);              // empty until received
  std::size_t task_ ABSL_GUARDED_BY(mutex_) = 0;     // set by acceptance
  std::int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;  // among the accepted streams of the pool
  std::string bye_detail_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<StreamCodec> codec_ ABSL_GUARDED_BY(mutex_);               // set by a valid Hello
  std::shared_ptr<const UnrollShape> shape_ ABSL_GUARDED_BY(mutex_);         // set by Welcome
  std::unique_ptr<Seats> seats_ ABSL_GUARDED_BY(mutex_);                     // set from Welcome to the end
  RolloutQueue::Producer producer_ ABSL_GUARDED_BY(mutex_) = 0;              // set by acceptance
  std::vector<PendingRows> pending_ ABSL_GUARDED_BY(mutex_);                 // of the submitted step, until Act
  bool needs_room_ ABSL_GUARDED_BY(mutex_) = false;                          // in the rollout queue, for further steps
  std::shared_ptr<const ObservationRows> received_ ABSL_GUARDED_BY(mutex_);  // a step that is not yet part of an unroll
  std::optional<Interruptions> interruptions_ ABSL_GUARDED_BY(mutex_);       // set by acceptance
  std::optional<StreamOptions> options_ ABSL_GUARDED_BY(mutex_);             // set by Welcome if its peer takes options
  StreamClock clock_ ABSL_GUARDED_BY(mutex_);
  StreamTrace trace_ ABSL_GUARDED_BY(mutex_);
  std::size_t num_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t num_newest_steps_ ABSL_GUARDED_BY(mutex_) = 0;  // those of num_steps_ that the newest message ended
  std::size_t num_episodes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kubebeast
