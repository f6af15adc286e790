#include "transport/dialer.h"

#include <algorithm>
#include <utility>

#include "access/tls.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstDelay{250};
constexpr milliseconds kLongestDelay{8000};
// A stream of at least this age ended for a reason of its own: the next call is not one more failure in a row.
constexpr std::chrono::seconds kHealthyLife{5};

}  // namespace

void Dialer::Start(grpc::CompletionQueue& queue) {
  const MutexLock lock(mutex_);
  queue_ = &queue;
}

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
  const std::vector<Endpoint> due = TakeDue(now);
  if (due.empty()) return;
  std::optional<std::string> authorization;
  if (pool_->token.enabled()) {
    auto value = pool_->token.Authorization();
    if (!value.ok()) {
      for (const Endpoint& endpoint : due) OnEnd(endpoint.address, false, value.status());
      return;
    }
    authorization = *std::move(value);
  }
  for (const Endpoint& endpoint : due) Call(endpoint, authorization);
}

std::vector<Endpoint> Dialer::TakeDue(Clock::time_point now) {
  const MutexLock lock(mutex_);
  std::vector<Endpoint> due;
  if (queue_ == nullptr || stopped_) return due;
  std::erase_if(targets_, [](const auto& entry) { return !entry.second.wanted && !entry.second.calling; });
  for (auto& [address, target] : targets_) {
    if (target.calling || now < target.due) continue;
    target.calling = true;
    target.called_at = now;
    due.push_back(target.endpoint);
  }
  return due;
}

void Dialer::Call(const Endpoint& endpoint, const std::optional<std::string>& authorization) {
  auto* const call = new ClientTransport(pool_, endpoint.address,
                                         [this, address = endpoint.address](bool accepted, const absl::Status& status) {
                                           OnEnd(address, accepted, status);
                                         });
  std::shared_ptr<grpc::Channel> channel;
  grpc::CompletionQueue* queue = nullptr;
  {
    const MutexLock lock(mutex_);
    targets_[endpoint.address].call = call;
    if (cutting_off_) call->Cancel();
    channel = OpenChannel(*pool_, endpoint, credentials_);
    queue = queue_;
  }
  call->Start(channel, authorization, *queue);
}

void Dialer::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
}

void Dialer::EndCalls(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!idle() && ended_.WaitUntil(mutex_, deadline)) {
  }
  cutting_off_ = true;
  for (auto& [address, target] : targets_) {
    if (target.call != nullptr) target.call->Cancel();
  }
  while (!idle()) ended_.Wait(mutex_);
}

bool Dialer::idle() const {
  return std::none_of(targets_.begin(), targets_.end(), [](const auto& entry) { return entry.second.calling; });
}

void Dialer::OnEnd(const std::string& address, bool accepted, const absl::Status& status) {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(address);
  if (found == targets_.end()) return;
  Target& target = found->second;
  target.calling = false;
  target.call = nullptr;
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
  ended_.NotifyAll();
}

milliseconds Dialer::NextDelay(Target& target) {
  const unsigned doublings = std::min(target.num_failures++, 10U);
  const milliseconds ceiling = std::min(kLongestDelay, kFirstDelay * (1U << doublings));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(ceiling.count() / 2, ceiling.count())(random_));
}

}  // namespace kubebeast
