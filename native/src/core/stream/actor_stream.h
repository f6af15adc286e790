// One env-server's stream.
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
#include "rollouts/rollout_assembler.h"
#include "stream/end_cause.h"
#include "stream/exchange.h"
#include "stream/interruptions.h"
#include "stream/pool_context.h"
#include "stream/stream_clock.h"
#include "sync/mutex.h"
#include "wire/handshake_codec.h"
#include "wire/wire_codec.h"

namespace kubebeast {

// Speaks the protocol with one peer:
//
//     Hello → (reserve) → accepted → (pool opens) → Welcome → [ Observations → rollout, batcher → Actions ]* → end
//
// While the model decides, nothing is read: the next Observations are asked for together with the Actions that they
// answer. A stream reads all the same, and so hears Bye and a peer that does not wait for its Actions, after its first
// step, while it is parked, and once the model has taken long. Step 0 of an unroll is parked while the rollout queue is
// full. The transport holds the stream until its end; then it lives as long as someone owes it an answer, and its slots
// are free when it is gone. Thread-safe.
class ActorStream final : public Actor, public std::enable_shared_from_this<ActorStream> {
 public:
  ActorStream(std::shared_ptr<PoolContext> pool, Transport& transport, std::string peer);
  ~ActorStream() override;

  // Registers the stream and starts to listen, or refuses it. Once.
  void Start();

  // Welcomes an accepted stream; the pool must be open.
  void OnPoolOpen();

  // Ends a stream whose peer has kept the learner waiting for too long, and one whose peer does not take its status;
  // accepts one in the reserve where it fits by now; listens to one whose step waits for long.
  void CheckDeadline(Clock::time_point now);

  // Ends the stream with UNAVAILABLE; what it had started counts as dropped.
  void Close();

  // Nullopt unless its Hello was accepted and it has not ended.
  std::optional<StreamInfo> Describe(Clock::time_point now);

  const std::vector<std::int32_t>& slots() const override { return slots_; }
  void Act(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state,
           const BatchRecord& batch) override;
  void Abandon() override;

  // Events of the transport, which is gone after the last one. OnRead: no message where the peer sends nothing more.
  // OnPeerGone: the call is over, whether or not anything is read or written.
  void OnRead(Message message);
  void OnWritten(bool ok);
  void OnPeerGone();
  void OnDone();

  // Whether its Hello was accepted. For the transport's last event and later.
  bool accepted() const { return !slots_.empty(); }

 private:
  // What the stream waits for: its start, the peer's Hello, free slots, the pool to open, the peer's next step, the
  // model, nothing any more.
  enum class Phase { kStart, kHello, kReserve, kOpen, kStep, kActions, kEnded };

  void Unpark();

  absl::Status Receive(const Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReceiveHello(Hello hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ResourceExhausted while it does not fit.
  absl::Status Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveReserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReceiveStep(std::shared_ptr<const ObservationRows> observation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Welcome(std::shared_ptr<const UnrollShape> shape) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the newest step must wait for room in the rollout queue; Unpark runs when there is some.
  bool Park() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the newest step to the batcher.
  void Submit(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  std::vector<std::int32_t> slots_;  // set once, by acceptance: who hears of the stream later reads them without a lock

  Mutex mutex_;
  Transport* transport_ ABSL_GUARDED_BY(mutex_);  // null when it is gone
  Exchange exchange_ ABSL_GUARDED_BY(mutex_);     // until the end
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStart;
  // Of the peer: for its Hello, its next step, or taking the status. Of the model: from then on the stream listens.
  Clock::time_point deadline_ ABSL_GUARDED_BY(mutex_);

  Hello hello_ ABSL_GUARDED_BY(mutex_);           // empty until it has come
  std::size_t task_ ABSL_GUARDED_BY(mutex_) = 0;  // from acceptance on
  std::string bye_detail_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<StreamCodec> codec_ ABSL_GUARDED_BY(mutex_);           // from a valid Hello on
  std::shared_ptr<const UnrollShape> shape_ ABSL_GUARDED_BY(mutex_);     // from Welcome on
  std::unique_ptr<RolloutAssembler> assembler_ ABSL_GUARDED_BY(mutex_);  // from Welcome to the end
  RolloutQueue::Producer producer_ ABSL_GUARDED_BY(mutex_) = 0;          // from acceptance on
  std::optional<Interruptions> interruptions_ ABSL_GUARDED_BY(mutex_);   // from acceptance on
  StreamClock clock_ ABSL_GUARDED_BY(mutex_);
  StreamTrace trace_ ABSL_GUARDED_BY(mutex_);
  std::size_t num_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t num_newest_steps_ ABSL_GUARDED_BY(mutex_) = 0;  // of them, those that the newest message ended
  std::size_t num_episodes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kubebeast
