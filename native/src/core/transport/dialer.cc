#include "transport/dialer.h"

#include <algorithm>
#include <utility>

#include "access/tls.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstDelay{250};
constexpr milliseconds kLongestDelay{8000};
// A stream that lived for so long has ended for a reason of its own: the next call is not one more failure.
constexpr std::chrono::seconds kHealthyLife{5};

// gRPC 1.51 aborts the process where a call's thread is the last to let go of a connection.
void KeepForEver(std::shared_ptr<grpc::Channel> channel) {
  struct Kept {
    Mutex mutex;
    std::vector<std::shared_ptr<grpc::Channel>> channels ABSL_GUARDED_BY(mutex);
  };
  static Kept& kept = *new Kept;
  const MutexLock lock(kept.mutex);
  kept.channels.push_back(std::move(channel));
}

}  // namespace

void Dialer::SetEndpoints(const std::vector<Endpoint>& endpoints) {
  const MutexLock lock(mutex_);
  if (credentials_ == nullptr) credentials_ = MakeChannelCredentials(pool_->options.tls);
  for (auto& [address, target] : targets_) target.wanted = false;
  for (const Endpoint& endpoint : endpoints) {
    Target& target = targets_[endpoint.address];
    target.endpoint = endpoint;
    target.wanted = true;
  }
}

void Dialer::Tick(Clock::time_point now) {
  const std::vector<Call> due = TakeDue(now);
  if (due.empty()) return;
  std::optional<std::string> authorization;
  if (pool_->token.enabled()) {
    auto value = pool_->token.Authorization();
    if (!value.ok()) {
      for (const Call& call : due) OnEnd(call.address, false, value.status());
      return;
    }
    authorization = *std::move(value);
  }
  for (const Call& call : due) {
    StartPlay(pool_, call.channel, call.address, authorization,
              [weak = weak_from_this(), address = call.address](bool accepted, const absl::Status& status) {
                if (const auto dialer = weak.lock()) dialer->OnEnd(address, accepted, status);
              });
  }
}

std::vector<Dialer::Call> Dialer::TakeDue(Clock::time_point now) {
  const MutexLock lock(mutex_);
  std::vector<Call> due;
  std::erase_if(targets_, [](const auto& entry) { return !entry.second.wanted && !entry.second.calling; });
  for (auto& [address, target] : targets_) {
    if (stopped_ || target.calling || now < target.due) continue;
    target.calling = true;
    target.called_at = now;
    target.channel = OpenChannel(*pool_, target.endpoint, credentials_);
    due.push_back({address, target.channel});
  }
  return due;
}

bool Dialer::WaitUntilIdle(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  const auto calls = [](const auto& entry) { return entry.second.calling; };
  bool in_time = true;
  while (in_time && std::any_of(targets_.begin(), targets_.end(), calls)) in_time = idle_.WaitUntil(mutex_, deadline);
  return in_time;
}

void Dialer::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
}

void Dialer::Forget() {
  const MutexLock lock(mutex_);
  for (auto& [address, target] : targets_) {
    if (target.calling) KeepForEver(std::move(target.channel));
  }
  targets_.clear();
}

void Dialer::OnEnd(const std::string& address, bool accepted, const absl::Status& status) {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(address);
  if (found == targets_.end()) return;
  Target& target = found->second;
  target.calling = false;
  const Clock::time_point now = Clock::now();
  if (accepted && now - target.called_at > kHealthyLife) target.num_failures = 0;
  if (!accepted && !stopped_) {
    ++pool_->stats->dials_failed;
    pool_->events.Add({.kind = StreamEvent::Kind::kDialFailed,
                       .peer = address,
                       .reason = absl::StatusCodeToString(status.code()),
                       .detail = std::string(status.message())});
  }
  target.due = now + NextDelay(target);
  idle_.NotifyAll();
}

milliseconds Dialer::NextDelay(Target& target) {
  const unsigned doublings = std::min(target.num_failures++, 10U);
  const milliseconds ceiling = std::min(kLongestDelay, kFirstDelay * (1U << doublings));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(ceiling.count() / 2, ceiling.count())(random_));
}

}  // namespace kubebeast
