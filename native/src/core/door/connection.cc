#include "door/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "door/tcp_state.h"

namespace kubebeast {
namespace {

constexpr std::size_t kDrainBytes = std::size_t{1} << 20U;

}  // namespace

Connection::Connection(std::uint64_t id, std::string peer, int fd, std::uint64_t bytes)
    : id_(id), peer_(std::move(peer)), fd_(fd), allowed_(bytes) {
  LimitTcpWindow(fd, kNewcomerWindowBytes);
}

Connection::Condition Connection::Look(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (fd_ < 0) return Condition::kGone;
  const TcpState state = ReadTcpState(fd_);
  num_received_ = state.bytes_received.value_or(0);
  if (!state.is_established) return Condition::kGone;
  if (!state.bytes_received.has_value()) return Condition::kFine;
  if (*state.bytes_received > allowed_) return Condition::kOverBudget;
  if (!has_stream_) return Condition::kFine;
  // A stream cannot save up unused bytes for a flood.
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - looked_at_).count());
  looked_at_ = now;
  allowed_ =
      std::min(allowed_ + static_cast<std::uint64_t>(seconds * kBytesPerSecond), *state.bytes_received + reserve_);
  return Condition::kFine;
}

void Connection::Shut() {
  const MutexLock lock(mutex_);
  if (fd_ < 0) return;
  // The last close sends a reset; otherwise a peer with much left to send would wait for room that never comes.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  shutdown(fd_, SHUT_RDWR);
  // Otherwise gRPC would still read the data. MSG_TRUNC discards it without a copy (tcp(7)).
  while (recv(fd_, nullptr, kDrainBytes, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

void Connection::Release() {
  const MutexLock lock(mutex_);
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void Connection::Watch(int epoll, bool every_arrival, bool add) {
  const MutexLock lock(mutex_);
  if (fd_ < 0) return;
  epoll_event event{};
  event.events = EPOLLET | EPOLLRDHUP | (every_arrival ? static_cast<unsigned>(EPOLLIN) : 0U);
  event.data.u64 = id_;
  epoll_ctl(epoll, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd_, &event);
}

void Connection::OnCall() {
  if (!has_called_.exchange(true)) allowed_ = std::max(allowed_, kNewcomerBytes);
}

bool Connection::OnShortCall(Clock::time_point now) {
  const MutexLock lock(mutex_);
  OnCall();
  if (!(has_stream_ ? acts_ : short_calls_).Take(now)) return false;
  allowed_ += kMessageOverheadBytes;
  return true;
}

bool Connection::OnAct(Clock::time_point now) {
  const MutexLock lock(mutex_);
  OnCall();
  return ++num_acts_ <= kMaxOpenActs && acts_.Take(now);
}

bool Connection::OnActEnd(ActEnd end) {
  const MutexLock lock(mutex_);
  --num_acts_;
  if (end == ActEnd::kOffence) ++num_offences_;
  if (end == ActEnd::kCancelled) ++num_cancelled_;
  return has_stream_ || (num_offences_ < kMaxOffences && num_cancelled_ < kMaxCancelled);
}

void Connection::Reserve(std::uint64_t bytes) {
  reserve_ += bytes;
  allowed_ += bytes;
}

std::uint64_t Connection::ExpectHello() {
  const MutexLock lock(mutex_);
  const bool may_be_long = has_stream_ ? num_hellos_ == 0 : !std::exchange(had_long_hello_, true);
  ++num_hellos_;
  const std::uint64_t bytes = may_be_long ? kLongHelloBytes : kHelloBytes;
  Reserve(bytes);
  return bytes;
}

std::uint64_t Connection::Accept(std::uint64_t step_bytes) {
  const MutexLock lock(mutex_);
  if (!std::exchange(has_stream_, true)) {
    Reserve(kRefusedMessageBytes);
    if (fd_ >= 0) LimitTcpWindow(fd_, kNoTcpWindowLimit);
  }
  Reserve(step_bytes);
  return step_bytes;
}

void Connection::GiveBack(std::uint64_t bytes, bool was_hello) {
  const MutexLock lock(mutex_);
  reserve_ -= bytes;
  if (was_hello) --num_hellos_;
}

void Connection::OnMessage(std::size_t bytes) {
  const MutexLock lock(mutex_);
  // Twice the size, to allow for small frames and TLS records.
  allowed_ += 2 * std::uint64_t{bytes} + kMessageOverheadBytes;
}

}  // namespace kubebeast
