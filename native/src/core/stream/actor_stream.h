// One env-server's stream.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/inference_batch.h"
#include "inference/step_trace.h"
#include "rollouts/rollout_assembler.h"
#include "stream/end_cause.h"
#include "stream/pool_context.h"
#include "stream/stream_clock.h"
#include "stream/transport.h"
#include "wire/wire_codec.h"

namespace kubebeast {

// Speaks the protocol with one peer:
//
//     Hello → accepted → (pool opens) → Welcome → [ Observations → rollout, batcher → Actions ]* → end
//
// A read is always outstanding, so that the peer's end is noticed in every phase. A step at row 0 of an unroll is
// parked while the rollout queue is full. The transport holds the stream until its end; then it lives as long as
// someone owes it an answer, and its slots are free when it is gone. Thread-safe.
class ActorStream final : public Actor, public std::enable_shared_from_this<ActorStream> {
 public:
  using Clock = std::chrono::steady_clock;

  ActorStream(std::shared_ptr<PoolContext> pool, Transport& transport, std::string peer);
  ~ActorStream() override;

  // Registers the stream and starts to listen, or refuses it. Once.
  void Start();

  // Welcomes an accepted stream; the pool must be open.
  void OnPoolOpen();

  // Ends a stream whose peer has kept the learner waiting for too long, and one whose peer does not take its status.
  void CheckDeadline(Clock::time_point now);

  // Ends the stream with UNAVAILABLE; what it had started counts as dropped.
  void Close();

  // Nullopt unless its Hello was accepted and it has not ended.
  std::optional<StreamInfo> Describe(Clock::time_point now);

  const std::vector<std::int32_t>& slots() const override { return slots_; }
  void Act(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state,
           const BatchRecord& batch) override;
  void Abandon() override;

  // Events of the transport, which is gone after the last one.
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  void OnDone();

  // Whether its Hello was accepted. For the transport's last event and later.
  bool accepted() const { return !slots_.empty(); }

 private:
  // What the stream waits for: the peer's Hello, the pool to open, the peer's next step, the model, nothing any more.
  enum class Phase { kHello, kOpen, kStep, kActions, kEnded };
  using Cause = EndCause;

  void Unpark();

  // The methods below need mutex_.
  absl::Status Receive();
  absl::Status ReceiveHello(const Hello& hello);
  absl::Status ReceiveStep(std::shared_ptr<const ObservationRows> observation);
  void Welcome(std::shared_ptr<const UnrollShape> shape);
  // Whether the newest row must wait for room in the rollout queue; Unpark runs when there is some.
  bool Park();
  // Gives the newest row to the batcher.
  void Submit(Clock::time_point now);
  void FinishTrace(const BatchRecord& batch, Clock::time_point now);
  void AwaitPeer(Phase phase, std::chrono::milliseconds timeout);
  void Send(std::string message);
  void End(Cause cause, const absl::Status& status, bool terminated = false);
  void CountInterruptions(const ObservationRows& observation);
  void CountEnd(Cause cause);
  void ReportEnd(Cause cause, const absl::Status& status);
  void Report(StreamEvent::Kind kind, std::string reason, std::string detail, std::string env_config = "");

  const std::shared_ptr<PoolContext> pool_;
  const std::string peer_;

  std::mutex mutex_;
  Transport* transport_;  // null when it is gone
  Phase phase_ = Phase::kHello;
  Clock::time_point deadline_;  // of the peer: for its Hello, its next step, or taking the status

  std::string env_server_id_;
  std::string instance_id_;
  std::string env_id_;
  std::string bye_detail_;
  std::uint32_t peer_minor_ = 0;     // of its protocol version
  std::vector<std::int32_t> slots_;  // set once, by acceptance
  std::vector<Compression> compression_;
  std::unique_ptr<StreamCodec> codec_;           // from acceptance on
  std::shared_ptr<const UnrollShape> shape_;     // from Welcome on
  std::unique_ptr<RolloutAssembler> assembler_;  // from Welcome to the end
  std::optional<RolloutQueue::Ticket> ticket_;   // while parked
  std::vector<std::uint64_t> interrupted_at_;    // [B]: the step of the last interrupted row, 0 for none
  Clock::time_point connected_at_;
  StreamClock clock_;
  StreamTrace trace_;
  std::size_t num_steps_ = 0;
  std::size_t num_episodes_ = 0;

  grpc::ByteBuffer read_;
  grpc::ByteBuffer write_;
  std::string next_write_;  // empty, or the reply that follows write_
  bool writing_ = false;
};

}  // namespace kubebeast
