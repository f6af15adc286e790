// Actor pool of the learner: serves env-servers, batches their rows for inference, assembles rollouts.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calls/poller.h"
#include "door/tcp_listener.h"
#include "inference/inference_batch.h"
#include "rollouts/rollout_batch.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"
#include "tensors/buffer_pool.h"
#include "transport/client_transport.h"
#include "transport/dialer.h"
#include "transport/pool_service.h"

namespace kubebeast {

// The learner's side of all streams. Data flow: stream → batcher → NextInference → Answer → stream; stream → rollout
// queue → NextRollouts. Without rollouts, a step is sampled and delivered when NextInference hands it out. Frames are
// copied in the thread that asks for a batch, never in a transport thread. Thread-safe. Methods that wait take a
// timeout; they return DeadlineExceeded when it has passed, and Cancelled as soon as the pool is closed.
class ActorPool {
 public:
  // Returns InvalidArgument with the name of the bad option.
  static absl::StatusOr<std::unique_ptr<ActorPool>> Create(PoolOptions options);
  ~ActorPool();
  ActorPool(const ActorPool&) = delete;
  ActorPool& operator=(const ActorPool&) = delete;

  // Binds and listens, if there is an address. Returns Unavailable, and closes the pool, if it cannot be bound or the
  // system allows no more threads. Returns FailedPrecondition on a second call, and Cancelled after Close.
  absl::Status Start();
  // Keeps a stream to each of the listening env-servers at `endpoints`, which replace those of the previous call.
  // Returns FailedPrecondition if TLS has no authorities to verify them.
  absl::Status SetEndpoints(const std::vector<Endpoint>& endpoints);
  // Returns the address on which the pool listens; before Start, the requested address.
  std::string address() const;

  absl::StatusOr<EnvSpec> WaitEnvSpec(std::chrono::milliseconds timeout);

  // Sets the expected environment in place of the first env-server, if the learner knows it from elsewhere; does
  // nothing if it is already set. Returns InvalidArgument for a malformed spec.
  absl::Status Expect(const EnvSpec& spec);

  // Refuses the environment of the first env-server if no model can be made for it: its streams end with
  // FAILED_PRECONDITION and the reason, as do further ones like them, and WaitEnvSpec waits for another. Returns
  // FailedPrecondition if the spec was expected, or the pool is open.
  absl::Status RefuseEnvSpec(const std::string& reason);

  // Fixes the model's output sizes and welcomes the waiting streams. interleaved: one entry per observation leaf, or
  // none; if true, the rows of a stacked leaf of bytes have the shape [*shape, frame_stack]. single_frames: batches
  // hold each frame of a stack once. Returns FailedPrecondition without a spec or on a second call, and InvalidArgument
  // with the leaf that cannot be interleaved.
  absl::Status Open(std::size_t num_logits, std::size_t core_state_size, std::vector<bool> interleaved = {},
                    bool single_frames = false);

  absl::StatusOr<std::unique_ptr<InferenceBatch>> NextInference(std::chrono::milliseconds timeout);
  // Drops unrolls that began with weights older than min_policy_version; 0 drops none. Returns FailedPrecondition
  // without rollouts.
  absl::StatusOr<RolloutBatch> NextRollouts(std::chrono::milliseconds timeout, std::int64_t min_policy_version = 0);
  // Adds the options of coming episodes, in their order; only with PoolOptions::episode_options. Never blocks. Returns
  // InvalidArgument for the first text that a message must not hold; none is added then.
  absl::Status PushEpisodeOptions(const std::vector<std::string>& texts) {
    return context_->episode_options.Push(texts);
  }
  // Blocks until at least half of the places for options are free, and returns their number.
  absl::StatusOr<std::size_t> WaitOptionsRoom(std::chrono::milliseconds timeout) {
    return context_->episode_options.WaitForRoom(Clock::now() + timeout);
  }
  std::deque<Episode> TakeEpisodes() { return context_->episodes.Take(); }
  std::deque<StreamEvent> TakeStreamEvents() { return context_->events.Take(); }
  // Traces the next stream that sends Actions; the trace is available after the answer to that step.
  void TraceNextStep() { context_->trace_request.Make(); }
  std::deque<StepTrace> TakeStepTraces() { return context_->traces.Take(); }
  std::vector<std::pair<std::string_view, std::int64_t>> GetStats() const;
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> GetHistograms() const {
    return context_->stats->TakeHistograms();
  }
  // Returns the streams with an accepted Hello.
  std::vector<StreamInfo> GetStreams() const;

  // Accepts no further streams, and makes the health service report that; open streams go on. finished: refuses
  // newcomers with OutOfRange, as the run is over, in place of Unavailable. Idempotent.
  void Drain(bool finished = false);

  // Ends every stream with Unavailable, wakes every waiting thread, and gives the transport `grace` to deliver the
  // status. Idempotent; may be called from any thread but the transport's.
  void Close(std::chrono::milliseconds grace);

 private:
  explicit ActorPool(const PoolOptions& options);
  absl::Status Serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  // Starts to accept connections for the server.
  absl::Status Accept(std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  void End(std::chrono::milliseconds grace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  // Ends streams with late peers, and dials env-servers that listen, until Close.
  void Sweep();
  // Waits for `time`; returns false at once if the pool is closed.
  bool Rest(std::chrono::milliseconds time);

  const std::shared_ptr<PoolContext> context_;
  const std::shared_ptr<BufferPool> buffers_;
  Dialer dialer_;
  PoolService service_;

  mutable Mutex mutex_;
  CondVar closing_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string address_ ABSL_GUARDED_BY(mutex_);

  Mutex lifecycle_mutex_;  // for Start and Close; locked before mutex_
  bool started_ ABSL_GUARDED_BY(lifecycle_mutex_) = false;
  std::unique_ptr<Poller> poller_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::unique_ptr<grpc::Server> server_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::unique_ptr<TcpListener> listener_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::thread sweeper_ ABSL_GUARDED_BY(lifecycle_mutex_);
};

}  // namespace kubebeast
