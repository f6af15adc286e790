// The learner's side of all env-servers: listens, batches their rows for inference, assembles rollouts.
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
#include "inference/inference_batch.h"
#include "rollouts/rollout_batch.h"
#include "stream/pool_context.h"
#include "sync/mutex.h"
#include "tensors/buffer_pool.h"
#include "transport/client_transport.h"
#include "transport/dialer.h"
#include "transport/pool_service.h"
#include "transport/tcp_listener.h"

namespace kubebeast {

// Data flow: stream → batcher → NextInference → Answer → stream; stream → rollout queue → NextRollouts. Without
// rollouts a step is sampled and delivered at once, where NextInference hands it out. Frames are copied in the thread
// that asks for a batch, never in a transport thread. Thread-safe. Methods that wait take a timeout, return
// DeadlineExceeded when it has passed, and Cancelled at once when the pool is closed.
class ActorPool {
 public:
  // InvalidArgument names the bad option.
  static absl::StatusOr<std::unique_ptr<ActorPool>> Create(PoolOptions options);
  ~ActorPool();
  ActorPool(const ActorPool&) = delete;
  ActorPool& operator=(const ActorPool&) = delete;

  // Binds and listens, where there is an address. Unavailable when it cannot be bound; FailedPrecondition the second
  // time.
  absl::Status Start();
  // Keeps a stream to each of the env-servers that listen at `endpoints`, which replace those of the call before.
  // FailedPrecondition where TLS has no authorities to check them by.
  absl::Status SetEndpoints(const std::vector<Endpoint>& endpoints);
  // Where the pool listens; before Start what was asked for.
  std::string address() const;

  absl::StatusOr<EnvSpec> WaitEnvSpec(std::chrono::milliseconds timeout);

  // Decides the environment in place of the first env-server, for a learner that has heard of it elsewhere; changes
  // nothing where that was decided before. InvalidArgument for a malformed spec.
  absl::Status Expect(const EnvSpec& spec);

  // Fixes the model's output sizes and welcomes the streams that wait. interleaved: one for each observation leaf, or
  // none: the rows of a stacked leaf of bytes come as [*shape, frame_stack]. single_frames: stacks come as their
  // frames, each once. FailedPrecondition without a spec or the second time, InvalidArgument names the leaf that cannot
  // be interleaved.
  absl::Status Open(std::size_t num_logits, std::size_t core_state_size, std::vector<bool> interleaved = {},
                    bool single_frames = false);

  absl::StatusOr<std::unique_ptr<InferenceBatch>> NextInference(std::chrono::milliseconds timeout);
  // Unrolls that began with weights older than min_policy_version are dropped; 0 drops none. FailedPrecondition without
  // rollouts.
  absl::StatusOr<RolloutBatch> NextRollouts(std::chrono::milliseconds timeout, std::int64_t min_policy_version = 0);
  std::deque<Episode> TakeEpisodes() { return context_->episodes.Take(); }
  std::deque<StreamEvent> TakeStreamEvents() { return context_->events.Take(); }
  // Of the next stream that sends Actions; its trace is there when that step is answered.
  void TraceNextStep() { context_->trace_request.Make(); }
  std::deque<StepTrace> TakeStepTraces() { return context_->traces.Take(); }
  std::vector<std::pair<std::string_view, std::int64_t>> GetStats() const;
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> GetHistograms() const {
    return context_->stats->TakeHistograms();
  }
  // Those whose Hello was accepted.
  std::vector<StreamInfo> GetStreams() const;

  // Takes no further streams, and the health service says so; those there go on. finished: newcomers learn that the run
  // is over, with OutOfRange in place of Unavailable. Idempotent.
  void Drain(bool finished = false);

  // Ends every stream with Unavailable, wakes every waiter, and gives the transport `grace` to say so. Idempotent, from
  // any thread but the transport's.
  void Close(std::chrono::milliseconds grace);

 private:
  explicit ActorPool(const PoolOptions& options);
  absl::Status Serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  // Begins to accept connections for the server.
  void Accept(std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  // Ends streams whose peers are late and calls env-servers that listen, until Close.
  void Sweep();
  // False at once when the pool is closed.
  bool Rest(std::chrono::milliseconds time);

  const std::shared_ptr<PoolContext> context_;
  const std::shared_ptr<BufferPool> buffers_;
  Dialer dialer_;
  PoolService service_;

  mutable Mutex mutex_;
  CondVar closing_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string address_ ABSL_GUARDED_BY(mutex_);

  Mutex lifecycle_mutex_;  // of Start, Drain and Close; comes before mutex_
  bool started_ ABSL_GUARDED_BY(lifecycle_mutex_) = false;
  std::unique_ptr<Poller> poller_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::unique_ptr<grpc::Server> server_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::unique_ptr<TcpListener> listener_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::thread sweeper_ ABSL_GUARDED_BY(lifecycle_mutex_);
};

}  // namespace kubebeast
