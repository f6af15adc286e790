#include "door/front_door.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "access/offences.h"
#include "sync/thread.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;

// Interval of checks for late newcomers, and number of other connections that are checked in it.
constexpr milliseconds kTick{10};
constexpr std::size_t kLooksPerTick = 64;
// Id of the eventfd in the epoll set; ids of connections start at 1.
constexpr std::uint64_t kWakeId = 0;
// Time for which an ended connection is remembered, as its calls come later.
constexpr milliseconds kRememberedFor{500};

// Decodes an IPv6 address, which gRPC 1.51 writes as a part of a URI.
std::string PlainPeer(const std::string& peer) {
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

}  // namespace

FrontDoor::FrontDoor(const Terms& terms, Handlers handlers)
    : terms_(terms), handlers_(std::move(handlers)), slow_lane_(terms.tls) {}

FrontDoor::~FrontDoor() {
  Stop();
  for (const int fd : {epoll_, wake_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status FrontDoor::Start() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0) return absl::UnavailableError("no file descriptor left to watch connections");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeId}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  return StartThread(thread_, [this] { Watch(); });
}

void FrontDoor::Close() {
  const MutexLock lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.stage != Stage::kTrusted) entry.connection->Shut();
  }
}

void FrontDoor::Stop() {
  stopping_ = true;
  if (wake_ >= 0) eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  Entries entries;
  {
    const MutexLock lock(mutex_);
    entries.swap(entries_);
    ids_.clear();
    newcomers_.clear();
    left_.clear();
    num_new_open_.clear();
    num_new_slow_ = num_without_stream_ = 0;
  }
  for (const auto& [id, entry] : entries) entry.connection->Release();
}

FrontDoor::Room FrontDoor::MakeRoom(const std::string& peer, Lane lane, Clock::time_point now) {
  std::shared_ptr<Connection> sent_away;
  {
    const MutexLock lock(mutex_);
    Room room = Room::kFree;
    sent_away = Replaceable(HostOfPeer(peer), lane, now, room);
    if (room != Room::kFree && sent_away == nullptr) return room;
    if (lane == Lane::kSlow && !slow_lane_.Admit(now)) return Room::kIsFull;
  }
  if (sent_away == nullptr) return Room::kFree;
  Refuse(*sent_away, connection_refusal::kCrowded);
  Leave(sent_away->id());
  return Room::kFree;
}

bool FrontDoor::Enter(int fd, const std::string& peer, Lane lane, Clock::time_point now) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Connection> sent_away;
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = entries_.empty();
    connection = std::make_shared<Connection>(
        ++num_entered_, peer, own, lane == Lane::kSlow ? Connection::kSlowNewcomerBytes : Connection::kNewcomerBytes);
    Entry entered{.connection = connection, .host = HostOfPeer(peer), .lane = lane, .since = now};
    // Peers may have the same address if this machine has several; a call counts for the newer connection.
    ids_.insert_or_assign(peer, connection->id());
    Count(entries_.emplace(connection->id(), std::move(entered)).first->second, 1);
    if (num_without_stream_ >= kMaxWithoutStream) sent_away = OldestWithoutStream();
  }
  connection->Watch(epoll_, /*every_arrival=*/true, /*add=*/true);
  // gRPC may read the first bytes before the thread sees them, and without connections the thread has no tick.
  if (is_first) eventfd_write(wake_, 1);
  if (sent_away != nullptr) Refuse(*sent_away, connection_refusal::kCrowded);
  return true;
}

std::shared_ptr<Connection> FrontDoor::Find(const std::string& peer) {
  const std::string plain = PlainPeer(peer);
  const MutexLock lock(mutex_);
  const auto id = ids_.find(plain);
  if (id == ids_.end()) return nullptr;
  const auto entry = entries_.find(id->second);
  return entry == entries_.end() ? nullptr : entry->second.connection;
}

void FrontDoor::Trust(const std::shared_ptr<Connection>& connection) {
  if (connection == nullptr) return;
  const MutexLock lock(mutex_);
  const auto entry = entries_.find(connection->id());
  if (entry != entries_.end() && entry->second.stage != Stage::kLeft) SetStage(entry->second, Stage::kTrusted);
}

void FrontDoor::Accept(const std::shared_ptr<Connection>& connection) {
  if (connection == nullptr) return;
  Trust(connection);
  connection->Watch(epoll_, handlers_.is_suspect(connection->peer()), /*add=*/false);
}

void FrontDoor::ChargeRefusal(const std::string& peer) {
  const std::string plain = PlainPeer(peer);
  const MutexLock lock(mutex_);
  const auto id = ids_.find(plain);
  if (id == ids_.end()) return;
  const auto entry = entries_.find(id->second);
  if (entry != entries_.end() && entry->second.lane == Lane::kSlow) slow_lane_.ChargeRefusal(Clock::now());
}

void FrontDoor::Refuse(Connection& connection, const ConnectionRefusal& refusal) {
  if (!connection.MarkRefused()) return;
  connection.Shut();
  handlers_.on_refusal(connection.peer(), refusal);
}

std::size_t FrontDoor::num_connections() {
  const MutexLock lock(mutex_);
  return entries_.size() - left_.size();
}

void FrontDoor::Watch() {
  std::array<epoll_event, 64> events{};
  Clock::time_point next_tick = Clock::now();
  while (!stopping_) {
    const int timeout = is_empty() ? -1 : static_cast<int>(kTick.count());
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout);
    const Clock::time_point now = Clock::now();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events.at(static_cast<std::size_t>(i)).data.u64;
      eventfd_t ignored = 0;
      if (id == kWakeId) {
        eventfd_read(wake_, &ignored);
      } else {
        Look(id, now);
      }
    }
    if (now < next_tick) continue;
    next_tick = now + kTick;
    CloseLate(now);
    Sweep(now);
    ForgetLeft(now);
  }
}

bool FrontDoor::is_empty() {
  const MutexLock lock(mutex_);
  return entries_.empty();
}

void FrontDoor::Look(std::uint64_t id, Clock::time_point now) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return;
    connection = entry->second.connection;
  }
  const Connection::Condition condition = connection->Look(now);
  ChargeBytes(id, now);
  switch (condition) {
    case Connection::Condition::kFine:
      break;
    case Connection::Condition::kOverBudget:
      Refuse(*connection, connection_refusal::kBytes);
      Leave(id);
      break;
    case Connection::Condition::kGone:
      Leave(id);
  }
}

void FrontDoor::ChargeBytes(std::uint64_t id, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.lane != Lane::kSlow || entry.stage == Stage::kTrusted) return;
  const std::uint64_t num_received = std::max(entry.connection->num_received(), entry.num_paid_for);
  slow_lane_.ChargeBytes(num_received - entry.num_paid_for, now);
  entry.num_paid_for = num_received;
}

void FrontDoor::CloseLate(Clock::time_point now) {
  std::vector<std::shared_ptr<Connection>> late;
  {
    const MutexLock lock(mutex_);
    while (!newcomers_.empty()) {
      Entry& oldest = entries_.at(*newcomers_.begin());
      if (now < oldest.since + terms_.patience) break;
      if (!oldest.connection->has_called()) late.push_back(oldest.connection);
      SetStage(oldest, Stage::kWithoutStream);
    }
  }
  for (const auto& connection : late) {
    Refuse(*connection, connection_refusal::kNoCall);
    Leave(connection->id());
  }
}

void FrontDoor::Sweep(Clock::time_point now) {
  std::vector<std::uint64_t> looked_at;
  {
    const MutexLock lock(mutex_);
    // gRPC may read the received data, and thereby clear its event, before the event is handled here.
    looked_at.assign(newcomers_.begin(), newcomers_.end());
    auto entry = entries_.upper_bound(swept_);
    for (std::size_t i = 0; i < std::min(entries_.size(), kLooksPerTick); ++i) {
      if (entry == entries_.end()) entry = entries_.begin();
      const Stage stage = entry->second.stage;
      if (stage != Stage::kNew && stage != Stage::kLeft) looked_at.push_back(entry->first);
      swept_ = entry->first;
      ++entry;
    }
  }
  for (const std::uint64_t id : looked_at) Look(id, now);
}

void FrontDoor::Leave(std::uint64_t id) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || entry->second.stage == Stage::kLeft) return;
    connection = entry->second.connection;
    SetStage(entry->second, Stage::kLeft);
    entry->second.since = Clock::now();
    left_.push_back(id);
  }
  connection->Release();
}

void FrontDoor::ForgetLeft(Clock::time_point now) {
  std::vector<std::shared_ptr<Connection>> silent;
  {
    const MutexLock lock(mutex_);
    for (; !left_.empty(); left_.pop_front()) {
      const auto entry = entries_.find(left_.front());
      if (now < entry->second.since + kRememberedFor) break;
      const std::shared_ptr<Connection> connection = entry->second.connection;
      if (!connection->has_called() && connection->MarkRefused()) silent.push_back(connection);
      const auto named = ids_.find(connection->peer());
      if (named != ids_.end() && named->second == connection->id()) ids_.erase(named);
      entries_.erase(entry);
    }
  }
  for (const auto& connection : silent) handlers_.on_refusal(connection->peer(), connection_refusal::kLeft);
}

void FrontDoor::SetStage(Entry& entry, Stage stage) {
  Count(entry, -1);
  entry.stage = stage;
  Count(entry, 1);
}

void FrontDoor::Count(const Entry& entry, int change) {
  const auto by = static_cast<std::size_t>(change);
  if (entry.stage == Stage::kWithoutStream) num_without_stream_ += by;
  if (entry.stage != Stage::kNew) return;
  if (change > 0) {
    newcomers_.insert(entry.connection->id());
  } else {
    newcomers_.erase(entry.connection->id());
  }
  if (entry.lane == Lane::kSlow) {
    num_new_slow_ += by;
  } else if (const std::size_t num = num_new_open_[entry.host] + by; num > 0) {
    num_new_open_[entry.host] = num;
  } else {
    num_new_open_.erase(entry.host);
  }
}

std::shared_ptr<Connection> FrontDoor::Replaceable(const std::string& host, Lane lane, Clock::time_point now,
                                                   Room& room) {
  const Clock::time_point by_turn = now - kSlowLaneTurn;
  const Clock::time_point by_patience = now - terms_.patience / 2;
  const auto of_host = num_new_open_.find(host);
  if (lane == Lane::kOpen && of_host != num_new_open_.end() && of_host->second >= kMaxNewcomersOfHost) {
    room = Room::kHostIsFull;
    return Oldest(by_patience, [&](const Entry& entry) { return entry.lane == Lane::kOpen && entry.host == host; });
  }
  const bool is_full = newcomers_.size() >= kMaxNewcomers;
  if (!is_full && (lane == Lane::kOpen || num_new_slow_ < kMaxSlowNewcomers)) return nullptr;
  room = Room::kIsFull;
  auto leaving =
      lane == Lane::kOpen ? nullptr : Oldest(by_turn, [](const Entry& entry) { return entry.lane == Lane::kSlow; });
  if (leaving == nullptr && is_full) leaving = Oldest(by_patience, [](const Entry&) { return true; });
  return leaving;
}

template <typename IsMeant>
std::shared_ptr<Connection> FrontDoor::Oldest(Clock::time_point latest, const IsMeant& is_meant) {
  for (const std::uint64_t id : newcomers_) {
    const Entry& entry = entries_.at(id);
    if (entry.since > latest) return nullptr;
    if (is_meant(entry)) return entry.connection;
  }
  return nullptr;
}

std::shared_ptr<Connection> FrontDoor::OldestWithoutStream() {
  for (const auto& [id, entry] : entries_) {
    if (entry.stage == Stage::kWithoutStream) return entry.connection;
  }
  return nullptr;
}

}  // namespace kubebeast
