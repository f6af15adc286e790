// Reports of a stream to the monitoring of its pool.
#include <utility>

#include "stream/actor_stream.h"

namespace kubebeast {

std::optional<StreamInfo> ActorStream::Describe(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!accepted() || phase_ == Phase::kEnded) return std::nullopt;
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  return StreamInfo{.env_server_id = hello_.env_server_id,
                    .instance_id = hello_.instance_id,
                    .env_id = hello_.spec.env_id,
                    .peer = peer_,
                    .slots = slots_,
                    .state = clock_.state(),
                    .num_steps = num_steps_,
                    .num_episodes = num_episodes_,
                    .connected_s = seconds(now - connected_at_),
                    .env_s = seconds(clock_.Spent(StreamClock::State::kEnv, now)),
                    .action_s = seconds(clock_.Spent(StreamClock::State::kInference, now)),
                    .parked_s = seconds(clock_.Spent(StreamClock::State::kParked, now))};
}

void ActorStream::AddEpisodes(const ObservationRows& rows) {
  for (const EpisodeEnd& episode : rows.episodes) {
    if (seats_->is_opponent(episode.env)) continue;
    ++num_episodes_;
    ++pool_->stats->episodes;
    pool_->episodes.Add({hello_.env_server_id, hello_.spec.env_id, episode.episode_return, episode.length, episode.info,
                         hello_.instance_id, rows.step,
                         options_.has_value() ? options_->of(episode.env) : std::string(),
                         seats_->OpponentsOf(episode.env)});
  }
}

void ActorStream::FinishTrace(const BatchRecord& batch, Clock::time_point now) {
  std::optional<StepTrace> trace = trace_.Finish(batch, now);
  if (!trace.has_value()) return;
  trace->env_server_id = hello_.env_server_id;
  trace->instance_id = hello_.instance_id;
  trace->env_id = hello_.spec.env_id;
  pool_->traces.Add(*std::move(trace));
}

void ActorStream::CountEnd(const EndCause& cause) {
  Stats& stats = *pool_->stats;
  if (!accepted()) {
    if (end_cause::IsRefusal(cause)) ++stats.streams_rejected;
    return;
  }
  --stats.streams;
  stats.envs -= static_cast<std::int64_t>(slots_.size());
  ++(stats.*cause.counter);
}

void ActorStream::ReportEnd(const EndCause& cause, const absl::Status& status) {
  // Wrong specs and a full pool are offences only above a rate, and an environment that hangs is none: their hosts must
  // receive the reason.
  const bool hello_is_late = cause == end_cause::kTimeout && !accepted();
  const bool is_offence = hello_is_late || absl::IsInvalidArgument(status);
  const bool is_refusal = !accepted() && end_cause::IsRefusal(cause);
  if (is_offence || (is_refusal && !pool_->refusals.Take(HostOfPeer(peer_), Clock::now()))) pool_->AddOffence(peer_);
  const std::string detail = cause == end_cause::kBye ? bye_detail_ : std::string(status.message());
  if (accepted()) {
    Report(StreamEvent::Kind::kLeft, std::string(cause.name), detail);
  } else if (end_cause::IsRefusal(cause)) {
    Report(StreamEvent::Kind::kRefused, absl::StatusCodeToString(status.code()), detail);
  }
}

void ActorStream::Report(StreamEvent::Kind kind, std::string reason, std::string detail, std::string env_config) {
  pool_->events.Add({kind, hello_.env_server_id, hello_.instance_id, hello_.spec.env_id, slots_.size(), peer_,
                     std::move(reason), std::move(detail), std::move(env_config), hello_.protocol_minor});
}

}  // namespace kubebeast
