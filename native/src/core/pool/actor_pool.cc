#include "pool/actor_pool.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "stream/actor_stream.h"
#include "sync/thread.h"
#include "wire/handshake_codec.h"
#include "wire/learner_texts.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

absl::Status Validate(const PoolOptions& options) {
  absl::Status status;
  const auto at_least = [&status](absl::string_view name, auto value, decltype(value) minimum) {
    if (value >= minimum) return;
    status.Update(absl::InvalidArgumentError(absl::StrCat(name, " = ", value, ": must be at least ", minimum)));
  };
  at_least("batch_size", options.batch_size, 1);
  at_least("min_inference_rows", options.inference.min_rows, 1);
  at_least("max_inference_rows", options.inference.max_rows, options.inference.min_rows);
  at_least("inference_timeout_ms", options.inference.timeout.count(), 0);
  // With less room than a batch needs, producers and NextRollouts would wait for each other.
  if (options.max_queued_rollouts > 0) at_least("max_queued_rollouts", options.max_queued_rollouts, options.batch_size);
  at_least("max_streams", options.max_streams, 1);
  at_least("max_envs", options.max_envs, 1);
  at_least("max_envs_per_stream", options.wire.max_envs_per_stream, 1);
  at_least("max_message_bytes", options.wire.max_message_bytes, 1);
  at_least("max_transport_bytes", options.max_transport_bytes, options.wire.max_message_bytes);
  at_least("handshake_timeout_ms", options.handshake_timeout.count(), 1);
  at_least("step_timeout_ms", options.step_timeout.count(), 1);
  if (options.max_envs > std::numeric_limits<std::int32_t>::max()) {
    status.Update(absl::InvalidArgumentError(absl::StrCat("max_envs = ", options.max_envs, ": must fit an int32")));
  }
  if (options.wire.max_message_bytes > std::numeric_limits<int>::max()) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("max_message_bytes = ", options.wire.max_message_bytes, ": must be below 2 GiB")));
  }
  status.Update(ValidateTasks(options.tasks));
  status.Update(ValidateLogInfo(options.log_info));
  status.Update(ValidateTls(options.tls, !options.address.empty()));
  if (options.expected.has_value()) status.Update(ValidateEnvSpec(*options.expected, options.wire.max_message_bytes));
  return status;
}

// Default of gRPC's memory limit: enough for connections between messages, and for this number of the largest messages
// at a time.
constexpr std::size_t kMinTransportBytes = std::size_t{1} << 30;
constexpr std::size_t kLargestMessages = 16;

// Limit for a connection without a stream; env-servers connect only for a stream.
constexpr int kMaxIdleMs = 60'000;

// In the order of FlushReason.
constexpr Stats::Value Stats::* kFlushes[] = {&Stats::inference_flush_ready, &Stats::inference_flush_all,
                                              &Stats::inference_flush_timeout};

bool IsUnix(absl::string_view address) { return absl::StartsWith(address, "unix:"); }

void SetTransportOptions(grpc::ServerBuilder& builder, const PoolContext& pool) {
  const PoolOptions& options = pool.options;
  if (pool.transport_memory.has_value()) builder.SetResourceQuota(*pool.transport_memory);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.wire.max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, Connection::kMaxOpenActs);
  // A peer that vanishes is noticed after 40 s, even if it never opened a stream.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // The front door limits pings by their bytes. Beyond a limit of its own, gRPC 1.51 would add an error to the
  // connection for each ping, and copy all errors before it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  // The handshakes of TLS and HTTP/2 have the same time limit as the Hello.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, static_cast<int>(options.handshake_timeout.count()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActorPool>> ActorPool::Create(PoolOptions options) {
  if (options.max_transport_bytes == 0) {
    options.max_transport_bytes = std::max(kMinTransportBytes, kLargestMessages * options.wire.max_message_bytes);
  }
  if (absl::Status status = Validate(options); !status.ok()) return status;
  options.wire.num_info = options.log_info.size();
  return std::unique_ptr<ActorPool>(new ActorPool(options));
}

ActorPool::ActorPool(const PoolOptions& options)
    : context_(std::make_shared<PoolContext>(options)),
      buffers_(std::make_shared<BufferPool>()),
      dialer_(context_),
      service_(context_),
      address_(options.address) {}

ActorPool::~ActorPool() { Close(std::chrono::milliseconds(0)); }

absl::Status ActorPool::Start() {
  const MutexLock lifecycle(lifecycle_mutex_);
  if (started_) return absl::FailedPreconditionError("the pool was started before");
  {
    const MutexLock lock(mutex_);
    if (closed_) return absl::CancelledError("closed");
  }
  started_ = true;
  absl::Status status = Serve();
  if (status.ok()) {
    dialer_.Start(poller_->queue());
    status = StartThread(sweeper_, [this] { Sweep(); });
  }
  if (!status.ok()) End(milliseconds(0));
  return status;
}

absl::Status ActorPool::Serve() {
  const PoolOptions& options = context_->options;
  if (options.address.empty()) {
    poller_ = std::make_unique<Poller>(std::make_unique<grpc::CompletionQueue>());
    return poller_->Start();
  }
  grpc::ServerBuilder builder;
  SetTransportOptions(builder, *context_);
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  if (IsUnix(options.address)) {
    builder.AddListeningPort(options.address, MakeServerCredentials(options.tls));
  } else {
    auto listener = TcpListener::Bind(options.address);
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    if (absl::Status status = context_->door.Start(); !status.ok()) return status;
    acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, MakeServerCredentials(options.tls));
  }
  service_.Register(builder);
  std::unique_ptr<grpc::ServerCompletionQueue> owned = builder.AddCompletionQueue();
  grpc::ServerCompletionQueue& queue = *owned;
  poller_ = std::make_unique<Poller>(std::move(owned));  // which outlives the server, as the server refers to the queue
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address));
  if (absl::Status status = poller_->Start(); !status.ok()) return status;
  if (absl::Status status = service_.Start(*server_, queue); !status.ok()) return status;
  if (listener_ == nullptr) return absl::OkStatus();
  if (absl::Status status = Accept(std::move(acceptor)); !status.ok()) return status;
  const MutexLock lock(mutex_);
  address_ = absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", listener_->port());
  return absl::OkStatus();
}

absl::Status ActorPool::Accept(std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor) {
  const auto hand_over = [acceptor = std::move(acceptor), context = context_](int fd, const std::string& peer,
                                                                              FrontDoor::Lane lane) {
    if (!context->door.Enter(fd, peer, lane, Clock::now())) {
      close(fd);
      context->AddAcceptFailure(absl::ResourceExhaustedError("watching a connection: Too many open files"));
      return;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  };
  return listener_->Start(
      {.tls = context_->options.tls.enabled(), .patience = context_->options.handshake_timeout},
      {.on_connection = hand_over,
       .is_blocked = [context = context_](const std::string& peer) { return context->Blocks(peer); },
       .make_room = [context = context_](
                        const std::string& peer,
                        FrontDoor::Lane lane) { return context->door.MakeRoom(peer, lane, Clock::now()); },
       .on_refusal = [context = context_](
                         const std::string& peer,
                         const ConnectionRefusal& refusal) { context->AddRefusedConnection(peer, refusal); },
       .on_error = [context = context_](const absl::Status& status) { context->AddAcceptFailure(status); }});
}

absl::Status ActorPool::SetEndpoints(const std::vector<Endpoint>& endpoints) {
  const TlsOptions& tls = context_->options.tls;
  if (tls.enabled() && tls.authorities.empty()) {
    return absl::FailedPreconditionError("tls_ca is empty: to dial with TLS it must say whom to trust");
  }
  dialer_.SetEndpoints(endpoints);
  dialer_.Tick(Clock::now());
  return absl::OkStatus();
}

std::string ActorPool::address() const {
  const MutexLock lock(mutex_);
  return address_;
}

absl::StatusOr<EnvSpec> ActorPool::WaitEnvSpec(std::chrono::milliseconds timeout) {
  return context_->registry.WaitEnvSpec(Clock::now() + timeout);
}

absl::Status ActorPool::Expect(const EnvSpec& spec) {
  absl::Status status = ValidateEnvSpec(spec, context_->options.wire.max_message_bytes);
  if (status.ok()) context_->registry.Expect(spec);
  return status;
}

absl::Status ActorPool::RefuseEnvSpec(const std::string& reason) {
  const absl::StatusOr<EnvSpec> refused = context_->registry.Refuse(reason);
  if (!refused.ok()) return refused.status();
  for (const auto& stream : context_->registry.streams()) stream->Refuse(*refused, reason);
  return absl::OkStatus();
}

absl::Status ActorPool::Open(std::size_t num_logits, std::size_t core_state_size, std::vector<bool> interleaved,
                             bool single_frames) {
  absl::Status status = context_->registry.Open(context_->options.unroll_length, num_logits, core_state_size,
                                                std::move(interleaved), single_frames);
  if (!status.ok()) return status;
  for (const auto& stream : context_->registry.streams()) stream->OnPoolOpen();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InferenceBatch>> ActorPool::NextInference(std::chrono::milliseconds timeout) {
  auto batch = context_->batcher.Pop(Clock::now() + timeout);
  if (!batch.ok()) return batch.status();
  Stats& stats = *context_->stats;
  ++stats.inference_batches;
  stats.inference_rows += static_cast<std::int64_t>(batch->num_rows);
  ++(stats.*kFlushes[static_cast<std::size_t>(batch->reason)]);
  if (!context_->options.has_rollouts()) {
    std::size_t num_steps = 0;
    for (const PendingStep& step : batch->items) num_steps += step.num_steps;
    stats.CountSampled(num_steps);
    stats.CountLeaving(num_steps, stats.steps_delivered);
  }
  return std::make_unique<InferenceBatch>(std::move(batch->items), context_->registry.shape(), *buffers_,
                                          context_->stats);
}

absl::StatusOr<RolloutBatch> ActorPool::NextRollouts(std::chrono::milliseconds timeout,
                                                     std::int64_t min_policy_version) {
  if (!context_->options.has_rollouts()) {
    return absl::FailedPreconditionError("unroll_length = 0: the pool assembles no rollouts");
  }
  const auto unrolls = context_->rollouts.Pop(context_->options.batch_size, Clock::now() + timeout, min_policy_version);
  if (!unrolls.ok()) return unrolls.status();
  const PoolOptions& options = context_->options;
  RolloutBatch batch = GatherRollouts(*unrolls, *context_->registry.shape(), *buffers_);
  context_->stats->rollout_padded_steps +=
      static_cast<std::int64_t>(options.batch_size * options.unroll_length - batch.num_transitions);
  return batch;
}

std::vector<std::pair<std::string_view, std::int64_t>> ActorPool::GetStats() const {
  auto values = context_->stats->Snapshot();
  const Histograms& histograms = context_->stats->histograms;
  const double busy_s =
      histograms.inference_gather.sum() + histograms.inference_model.sum() + histograms.inference_reply.sum();
  values.emplace_back("inference_busy_us", static_cast<std::int64_t>(busy_s * 1e6));
  values.emplace_back("rows_waiting", context_->batcher.rows_waiting());
  values.emplace_back("rollouts_queued", context_->rollouts.size());
  values.emplace_back("rollouts_running", context_->rollouts.num_running());
  values.emplace_back("rollout_queue_capacity", context_->rollouts.capacity());
  values.emplace_back("slots", context_->options.max_envs);
  values.emplace_back("streams_parked", context_->rollouts.num_parked());
  return values;
}

std::vector<StreamInfo> ActorPool::GetStreams() const {
  const Clock::time_point now = Clock::now();
  std::vector<StreamInfo> described;
  for (const auto& stream : context_->registry.streams()) {
    if (auto info = stream->Describe(now)) described.push_back(*std::move(info));
  }
  return described;
}

void ActorPool::Drain(bool finished) {
  context_->registry.Drain(finished);
  dialer_.Stop();
  service_.health().SetServing(false);
}

void ActorPool::Close(std::chrono::milliseconds grace) {
  const MutexLock lifecycle(lifecycle_mutex_);
  End(grace);
}

void ActorPool::End(std::chrono::milliseconds grace) {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    closing_.NotifyAll();
  }
  listener_.reset();
  context_->door.Close();
  dialer_.Stop();
  context_->registry.Close();
  context_->batcher.Close();
  context_->rollouts.Close();
  context_->episode_options.Close();
  for (const auto& stream : context_->registry.streams()) stream->Close();
  const Clock::time_point deadline = Clock::now() + grace;
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + grace);
  dialer_.EndCalls(deadline);
  if (sweeper_.joinable()) sweeper_.join();
  service_.Stop();
  context_->door.Stop();
  server_.reset();
  poller_.reset();
}

void ActorPool::Sweep() {
  const milliseconds shortest = std::min(context_->options.handshake_timeout, context_->options.step_timeout);
  const milliseconds tick = std::clamp(shortest / 4, milliseconds(1), milliseconds(250));
  while (Rest(tick)) {
    const Clock::time_point now = Clock::now();
    for (const auto& stream : context_->registry.streams()) stream->CheckDeadline(now);
    context_->rollouts.Resume();
    dialer_.Tick(now);
  }
}

bool ActorPool::Rest(milliseconds time) {
  const Clock::time_point until = Clock::now() + time;
  const MutexLock lock(mutex_);
  while (!closed_ && closing_.WaitUntil(mutex_, until)) {
  }
  return !closed_;
}

}  // namespace kubebeast
