#include "stream/actor_stream.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calls/message_reader.h"

namespace kubebeast {
namespace {

// Time that the model may take before the stream begins to read from its peer meanwhile.
constexpr std::chrono::milliseconds kPatienceWithTheModel{100};

// Returns FailedPrecondition if the learner cannot train with the agents of these environments.
absl::Status CheckAgents(const Hello& hello, const PoolOptions& options) {
  if (hello.takes_turns && !(options.turns && options.has_rollouts())) {
    return absl::FailedPreconditionError(
        "hello.takes_turns: true, but the learner plays no agents that take turns: it has a lag (--lag), or is a "
        "vector "
        "environment");
  }
  if (options.opponents && hello.num_agents < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        "hello.num_agents: ", hello.num_agents,
        ", but the learner trains against opponents (--opponents), which takes environments of several agents"));
  }
  return absl::OkStatus();
}

}  // namespace

ActorStream::ActorStream(std::shared_ptr<PoolContext> pool, Transport& transport, std::string peer)
    : pool_(std::move(pool)),
      peer_(std::move(peer)),
      connected_at_(Clock::now()),
      transport_(&transport),
      exchange_(transport, pool_->stats->bytes_sent),
      clock_(connected_at_) {}

ActorStream::~ActorStream() { pool_->registry.ReleaseSlots(slots_); }

void ActorStream::Start() {
  const MutexLock lock(mutex_);
  AwaitPeer(Phase::kHello, pool_->options.handshake_timeout);
  if (const absl::Status status = pool_->registry.Add(shared_from_this()); !status.ok()) {
    // Counts as closed, with no fault of the peer, if the pool accepts no more streams.
    End(absl::IsResourceExhausted(status) ? end_cause::kInvalid : end_cause::kClosed, status);
    return;
  }
  exchange_.Read();
}

void ActorStream::OnPoolOpen() {
  const MutexLock lock(mutex_);
  if (phase_ == Phase::kOpen) Welcome(pool_->registry.shape());
}

void ActorStream::Refuse(const EnvSpec& spec, const std::string& reason) {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kOpen || !CheckCompatible(spec, hello_.spec).ok()) return;
  End(end_cause::kInvalid, absl::FailedPreconditionError(reason));
}

void ActorStream::CheckDeadline(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (phase_ == Phase::kReserve) {
    if (const absl::Status status = Accept(); !status.ok() && !absl::IsResourceExhausted(status)) {
      End(absl::IsUnavailable(status) ? end_cause::kClosed : end_cause::kInvalid, status);
    }
    return;
  }
  if (now < deadline_) return;
  if (phase_ == Phase::kHello) {
    End(end_cause::kTimeout,
        absl::DeadlineExceededError(absl::StrCat("no Hello within ", pool_->options.handshake_timeout.count(), " ms")));
  } else if (phase_ == Phase::kStep && exchange_.waits_for_peer()) {
    End(end_cause::kInvalid, absl::InvalidArgumentError("the peer does not read its replies"));
  } else if (phase_ == Phase::kStep) {
    End(end_cause::kTimeout,
        absl::DeadlineExceededError(absl::StrCat("no Observations of step ", codec_->next_step(), " within ",
                                                 pool_->options.step_timeout.count(), " ms")));
  } else if (phase_ == Phase::kActions) {
    if (!exchange_.reading()) exchange_.Read();
  } else if (phase_ == Phase::kEnded && transport_ != nullptr) {
    transport_->Cancel();
  }
}

void ActorStream::Close() {
  const MutexLock lock(mutex_);
  End(end_cause::kClosed, absl::UnavailableError("the learner is shutting down"));
}

void ActorStream::Act(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state,
                      const BatchRecord& batch) {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kActions) return;
  const bool traced = pool_->trace_request.Take();
  std::string reply = codec_->EncodeActions(codec_->next_step() - 1, seats_->Actions(*outputs, first_output),
                                            traced && hello_.protocol_minor >= kTracedMinor,
                                            options_.has_value() ? options_->Next() : std::vector<EpisodeOptions>());
  pending_.clear();
  seats_->SetOutputs(outputs, first_output, core_state);
  AwaitPeer(Phase::kStep, pool_->options.step_timeout);
  // Read the clock before Send: the peer may have answered by the time it returns.
  const Clock::time_point now = Clock::now();
  exchange_.Send(std::move(reply));
  pool_->stats->histograms.stream_action.Observe(clock_.Enter(StreamClock::State::kEnv, now));
  FinishTrace(batch, now);
  if (traced) trace_.Begin(now);
}

void ActorStream::Abandon() {
  const MutexLock lock(mutex_);
  End(end_cause::kDropped, absl::InternalError("the learner dropped the inference batch of this step"));
}

void ActorStream::OnRead(Message message) {
  const MutexLock lock(mutex_);
  exchange_.OnRead();
  if (phase_ == Phase::kEnded) return;
  if (!message.has_value()) {
    End(end_cause::kDisconnect, absl::OkStatus());
    return;
  }
  try {
    if (const absl::Status status = Receive(message); !status.ok()) End(end_cause::kInvalid, status);
  } catch (const std::exception& error) {
    End(end_cause::kDropped, absl::InternalError(error.what()));
  }
  const bool is_parked = clock_.state() == StreamClock::State::kParked;
  const bool is_answered_soon = phase_ == Phase::kActions && !is_parked && codec_->next_step() > 1;
  if (phase_ != Phase::kEnded && !exchange_.reading() && !is_answered_soon) exchange_.Read();
}

void ActorStream::OnWritten(bool ok) {
  const MutexLock lock(mutex_);
  exchange_.OnWritten(ok && phase_ != Phase::kEnded);
  // A read under way completes by itself, and may bring a Bye first.
  if (!ok && !exchange_.reading()) End(end_cause::kDisconnect, absl::OkStatus());
}

void ActorStream::OnPeerGone() {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kStart && !exchange_.reading()) End(end_cause::kDisconnect, absl::OkStatus());
}

void ActorStream::OnDone() {
  const MutexLock lock(mutex_);
  transport_ = nullptr;
  pool_->registry.Remove(this);
}

absl::Status ActorStream::Receive(const Message& message) {
  const std::size_t size = message.size();
  ++pool_->stats->messages_received;
  pool_->stats->bytes_received += static_cast<std::int64_t>(size);
  if (message.compressed()) {
    return absl::InvalidArgumentError(
        "the message is compressed by gRPC: switch the compression of the channel off; observations may be compressed "
        "by LZ4 instead (Hello.offered_compression)");
  }
  MessageReader reader(message);
  if (phase_ == Phase::kHello) {
    absl::StatusOr<Hello> hello = DecodeHello(&reader, size, pool_->options.wire);
    return hello.ok() ? ReceiveHello(*std::move(hello)) : hello.status();
  }
  absl::StatusOr<Request> request = codec_->Decode(&reader, size);
  if (!request.ok()) return request.status();
  if (const Bye* bye = std::get_if<Bye>(&*request)) {
    bye_detail_ = bye->detail;
    End(end_cause::kBye, absl::OkStatus(), bye->reason == Bye::Reason::kTerminated);
    return absl::OkStatus();
  }
  return ReceiveStep(std::move(std::get<std::shared_ptr<const ObservationRows>>(*request)));
}

absl::Status ActorStream::ReceiveHello(Hello hello) {
  hello_ = std::move(hello);
  if (absl::Status status = CheckRun(hello_, pool_->options.run_id); !status.ok()) return status;
  const absl::StatusOr<std::size_t> task = pool_->tasks.Find(hello_.spec.env_id);
  if (!task.ok()) return task.status();
  task_ = *task;
  if (absl::Status status = CheckAgents(hello_, pool_->options); !status.ok()) return status;
  codec_ = std::make_unique<StreamCodec>(hello_, pool_->options.wire);
  const absl::Status accepted = Accept();
  const bool may_fit = pool_->options.keep_surplus && hello_.num_envs <= pool_->options.max_envs;
  if (!absl::IsResourceExhausted(accepted) || !may_fit) return accepted;
  transport_->Admit(MaxStepBytes(hello_, pool_->options.wire));
  phase_ = Phase::kReserve;
  ++pool_->stats->streams_in_reserve;
  return absl::OkStatus();
}

absl::Status ActorStream::Accept() {
  absl::StatusOr<std::vector<std::int32_t>> slots = pool_->registry.Admit(hello_);
  if (!slots.ok()) return slots.status();
  slots_ = *std::move(slots);
  transport_->Admit(MaxStepBytes(hello_, pool_->options.wire));
  LeaveReserve();
  number_ = ++pool_->stats->streams_accepted;
  producer_ = pool_->rollouts.Join(task_, Seats::NumLearning(hello_, pool_->options.opponents));
  ++pool_->stats->streams;
  pool_->stats->envs += hello_.num_envs;
  interruptions_.emplace(hello_.num_envs);
  Report(StreamEvent::Kind::kJoined, "", "", hello_.spec.env_config);
  phase_ = Phase::kOpen;
  if (auto shape = pool_->registry.shape()) Welcome(std::move(shape));
  return absl::OkStatus();
}

void ActorStream::LeaveReserve() {
  if (phase_ == Phase::kReserve) --pool_->stats->streams_in_reserve;
}

void ActorStream::Welcome(std::shared_ptr<const UnrollShape> shape) {
  shape_ = std::move(shape);
  needs_room_ = pool_->options.has_rollouts();
  seats_ = std::make_unique<Seats>(hello_, pool_->options.opponents, shape_, number_);
  pool_->batcher.Join(this);
  AwaitPeer(Phase::kStep, pool_->options.step_timeout);
  const bool knows_info = hello_.protocol_minor >= kInfoMinor;
  if (pool_->options.episode_options && hello_.protocol_minor >= kOptionsMinor) {
    options_.emplace(pool_->episode_options, *pool_->stats, hello_.num_envs);
  }
  exchange_.Send(EncodeWelcome(pool_->options.run_id, hello_.compression,
                               knows_info ? pool_->options.log_info : std::vector<std::string>(),
                               options_.has_value() ? options_->Begin() : std::vector<EpisodeOptions>()));
}

absl::Status ActorStream::ReceiveStep(std::shared_ptr<const ObservationRows> observation) {
  if (phase_ != Phase::kStep) {
    return absl::InvalidArgumentError(absl::StrCat("Observations of step ", observation->step, " came before the ",
                                                   shape_ == nullptr ? "Welcome" : "Actions of the step before"));
  }
  Stats& stats = *pool_->stats;
  const Clock::time_point now = Clock::now();
  const bool answers = clock_.state() == StreamClock::State::kEnv;
  const Clock::duration env_time = clock_.Enter(StreamClock::State::kInference, now);
  if (answers) stats.histograms.stream_env.Observe(env_time);
  trace_.Receive(*observation, now);
  stats.rows_received += observation->num_envs();
  AddEpisodes(*observation);
  if (options_.has_value()) options_->Note(*observation);
  stats.env_interruptions += static_cast<std::int64_t>(interruptions_->Count(*observation));
  received_ = std::move(observation);
  phase_ = Phase::kActions;
  deadline_ = now + kPatienceWithTheModel;
  if (!pool_->options.has_rollouts() || pool_->rollouts.Return(producer_, now) || !Park()) TakeStep(now);
  return absl::OkStatus();
}

void ActorStream::AddStep() {
  const std::shared_ptr<const ObservationRows> rows = std::exchange(received_, nullptr);
  seats_->FindActing(*rows);
  num_newest_steps_ = 0;
  for (Seat* const seat : seats_->acting()) {
    const RolloutAssembler::Added added = seat->assembler.AddStep(rows);
    if (seat->is_opponent) {
      pool_->stats->opponent_steps += static_cast<std::int64_t>(added.num_steps);
      continue;
    }
    num_newest_steps_ += added.num_steps;
    if (pool_->options.has_rollouts()) pool_->stats->CountSampled(added.num_steps);
    if (added.finished == nullptr) continue;
    pool_->rollouts.Deliver(added.finished, producer_, task_);
    needs_room_ = true;  // for all seats: with the room of one alone, streams could wait for each other
  }
  num_steps_ += num_newest_steps_;
}

void ActorStream::TakeStep(Clock::time_point now) {
  AddStep();
  if (!std::exchange(needs_room_, false) || !Park()) Submit(now);
}

bool ActorStream::Park() {
  const auto resume = [weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->Unpark();
  };
  if (!pool_->rollouts.Park(resume, producer_)) return false;
  pool_->batcher.Leave(this);
  clock_.Enter(StreamClock::State::kParked, Clock::now());
  return true;
}

void ActorStream::Unpark() {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kActions) return;
  pool_->batcher.Join(this);
  const Clock::time_point now = Clock::now();
  pool_->stats->histograms.stream_parked.Observe(clock_.Enter(StreamClock::State::kInference, now));
  if (received_ == nullptr) {
    Submit(now);
  } else {
    TakeStep(now);
  }
}

void ActorStream::Submit(Clock::time_point now) {
  trace_.Submit(now);
  std::size_t num_rows = 0;
  for (const Seat* const seat : seats_->acting()) {
    pending_.push_back({seat->assembler.started(), seat->assembler.at_unroll_start(), seat->is_opponent});
    num_rows += seat->envs.count;
  }
  pool_->batcher.Push(this, num_rows, {shared_from_this(), pending_, now, task_, num_newest_steps_});
}

void ActorStream::AwaitPeer(Phase phase, std::chrono::milliseconds timeout) {
  const Clock::time_point now = Clock::now();
  phase_ = phase;
  deadline_ = now + timeout;
  if (phase == Phase::kStep && pool_->options.has_rollouts()) pool_->rollouts.Await(producer_, now);
}

void ActorStream::End(const EndCause& cause, const absl::Status& status, bool terminated) {
  if (phase_ == Phase::kEnded) return;
  LeaveReserve();
  // The peer has as long for the status as for its Hello; then CheckDeadline cancels the call.
  AwaitPeer(Phase::kEnded, pool_->options.handshake_timeout);
  if (clock_.state() == StreamClock::State::kParked) {
    pool_->stats->histograms.stream_parked.Observe(clock_.Enter(StreamClock::State::kStarting, Clock::now()));
  }
  pool_->batcher.Leave(this);
  CountEnd(cause);
  ReportEnd(cause, status);
  if (seats_ != nullptr) {
    if (received_ != nullptr) AddStep();
    for (Seat& seat : seats_->all()) {
      const auto unroll = seat.assembler.Finish(terminated ? Unroll::End::kTerminated : Unroll::End::kTruncated);
      if (unroll != nullptr) pool_->rollouts.Deliver(unroll, producer_, task_);
    }
    seats_.reset();
  }
  if (accepted()) pool_->rollouts.Leave(producer_);
  transport_->Finish(status);
}

}  // namespace kubebeast
