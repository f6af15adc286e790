#include "kubebeast/client.h"

#include "player.h"

namespace kubebeast::client {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kPending:
      return "pending";
    case Code::kLost:
      return "lost";
    case Code::kMisuse:
      return "misuse";
    case Code::kRefused:
      return "refused";
    case Code::kClosed:
      return "closed";
  }
  return "unknown";
}

Reply PendingReply::Wait(Clock::time_point deadline) const {
  return taken_.ok() ? player_->Wait(env_, deadline) : Reply{taken_, {}};
}

PendingReply Environment::Start(const Observation& observation) {
  return {player_, env_, player_->Post(env_, Row::kFirst, observation.frames(), 0)};
}

PendingReply Environment::Observe(const Observation& observation, float reward) {
  return {player_, env_, player_->Post(env_, Row::kInner, observation.frames(), reward)};
}

PendingReply Environment::End(const Observation& observation, float reward, Ending ending) {
  const Row row = ending == Ending::kBoth        ? Row::kBoth
                  : ending == Ending::kTruncated ? Row::kTruncated
                                                 : Row::kTerminated;
  return {player_, env_, player_->Post(env_, row, observation.frames(), reward)};
}

PendingReply Environment::Interrupt() { return {player_, env_, player_->Post(env_, Row::kInterrupted, {}, 0)}; }

PendingReply Environment::Absent() { return {player_, env_, player_->Post(env_, Row::kAbsent, {}, 0)}; }

Reply Environment::Wait(Clock::time_point deadline) { return player_->Wait(env_, deadline); }

Status Environment::ReportEpisode(double episode_return, std::uint64_t length) {
  return player_->Report(env_, episode_return, length);
}

Status Environment::SetInfo(std::string_view key, double value) { return player_->SetInfo(env_, key, value); }

std::string Environment::NextOptions() const { return player_->NextOptions(env_); }

Stream::Stream(const Options& options) : player_(std::make_shared<internal::Player>(options)) {}

Stream::~Stream() { Close(); }

Environment Stream::environment(std::uint32_t env) { return {player_, env}; }

Status Stream::WaitUntilConnected(Clock::time_point deadline) { return player_->WaitUntilConnected(deadline); }

Status Stream::status() const { return player_->status(); }

Status Stream::Close(Reason reason, std::string_view detail, std::chrono::nanoseconds timeout) {
  return player_->Close(reason, detail, Clock::now() + timeout);
}

}  // namespace kubebeast::client
