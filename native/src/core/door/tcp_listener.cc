#include "door/tcp_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "door/tcp_opening.h"
#include "door/tcp_state.h"
#include "sync/thread.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
// Pause after a failed accept, such as for lack of file descriptors: an immediate retry would spin.
constexpr milliseconds kPause{10};

// Most connections without a byte. Honest peers send at once, so the oldest of so many is not honest.
constexpr std::size_t kMaxSilent = 1024;

// Interval of checks for room, and number of connections of the slow lane that are checked in it.
constexpr milliseconds kAdmitEvery{20};
constexpr std::size_t kOfferedAtOnce = 64;
// Shortest wait in the slow lane, in which a flood shows itself, and the most bytes that a client sends before the
// server has sent any.
constexpr milliseconds kShortestWait{20};
constexpr int kMaxOpeningBytes = 8192;
// Pause after a refusal for lack of a place to wait. New connections are delayed by it, streams are not.
constexpr milliseconds kOffenderPace{1};
// Most connections accepted between two checks of those that are silent or wait.
constexpr int kMaxAccepted = 64;

void SetFlag(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof(value)); }

void MakeNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Returns the peer in gRPC's notation: as IPv4 even if it came through an IPv6 socket.
std::string PeerOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int port = PortOf(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    const std::string scope = v6.sin6_scope_id == 0 ? "" : absl::StrCat("%", v6.sin6_scope_id);
    return absl::StrCat("ipv6:[", text, scope, "]:", port);
  }
  const void* v4 = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) v4 = &v6.sin6_addr.s6_addr[12];
  inet_ntop(AF_INET, v4, text, sizeof(text));
  return absl::StrCat("ipv4:", text, ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Bind(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": no port"));
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  std::unique_ptr<TcpListener> listener(new TcpListener);
  const absl::Status status = listener->Listen(std::string(host), address.substr(colon + 1));
  if (!status.ok()) return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", status.message()));
  return listener;
}

absl::Status TcpListener::Listen(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  absl::Status status = absl::UnavailableError("no address");
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    sockaddr_storage wanted{};
    std::memcpy(&wanted, entry->ai_addr, entry->ai_addrlen);
    // The first address picks the port of all.
    if (port_ != 0) reinterpret_cast<sockaddr_in&>(wanted).sin_port = htons(static_cast<std::uint16_t>(port_));
    const int fd = socket(entry->ai_family, SOCK_STREAM, 0);
    if (fd < 0) continue;  // a family that this machine lacks
    MakeNonBlocking(fd);
    SetFlag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (entry->ai_family == AF_INET6) SetFlag(fd, IPPROTO_IPV6, IPV6_V6ONLY, host == "::" ? 0 : 1);
    StartWithSmallWindows(fd);
    socklen_t size = sizeof(wanted);
    if (bind(fd, reinterpret_cast<sockaddr*>(&wanted), entry->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&wanted), &size) != 0) {
      status = absl::UnavailableError(std::strerror(errno));
      close(fd);
      continue;
    }
    port_ = PortOf(wanted);
    listening_.push_back(fd);
  }
  if (listening_.empty()) return status;
  if (pipe(wake_) != 0) return absl::UnavailableError(std::strerror(errno));
  MakeNonBlocking(wake_[0]);
  MakeNonBlocking(wake_[1]);
  return absl::OkStatus();
}

TcpListener::~TcpListener() {
  stopping_ = true;
  if (wake_[1] >= 0) close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  if (wake_[0] >= 0) close(wake_[0]);
  for (const int fd : listening_) close(fd);
  for (const Open& connection : silent_) close(connection.fd);
  for (const WaitingRoom::Guest& guest : waiting_.TakeAll()) close(guest.fd);
}

absl::Status TcpListener::Start(const Terms& terms, Handlers handlers) {
  terms_ = terms;
  handlers_ = std::move(handlers);
  return StartThread(thread_, [this] { Accept(); });
}

void TcpListener::Accept() {
  std::vector<pollfd> polled;
  while (!stopping_) {
    const int timeout = CloseLate();
    polled.assign(1, {.fd = wake_[0], .events = POLLIN, .revents = 0});
    for (const int fd : listening_) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    for (const Open& connection : silent_) polled.push_back({.fd = connection.fd, .events = POLLIN, .revents = 0});
    if (poll(polled.data(), polled.size(), timeout) < 0) {
      if (errno != EINTR) ReportError("waiting for connections");
      continue;
    }
    const pollfd* result = polled.data() + 1 + listening_.size();
    std::erase_if(silent_, [&](const Open& connection) {
      return (result++)->revents != 0 && Judge(connection.fd, connection.peer);
    });
    for (std::size_t i = 0; i < listening_.size(); ++i) {
      if (polled[1 + i].revents != 0) AcceptAllFrom(listening_[i]);
    }
    AdmitWaiting();
  }
}

void TcpListener::AcceptAllFrom(int listening) {
  for (int i = 0; i < kMaxAccepted && AcceptFrom(listening); ++i) {
  }
}

bool TcpListener::AcceptFrom(int listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int fd = accept(listening, reinterpret_cast<sockaddr*>(&address), &size);
  if (fd < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ReportError("accepting a connection");
    return false;
  }
  const std::string peer = PeerOf(address);
  MakeNonBlocking(fd);
  SetFlag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (handlers_.is_blocked(peer)) {
    Wait(fd, peer, FrontDoor::Lane::kSlow);
    return true;
  }
  if (Judge(fd, peer)) return true;
  silent_.push_back({fd, peer, Clock::now() + terms_.patience});
  if (silent_.size() <= kMaxSilent) return true;
  Refuse(silent_.front().fd, silent_.front().peer, connection_refusal::kSilent);
  silent_.pop_front();
  return true;
}

bool TcpListener::Judge(int fd, const std::string& peer) {
  const ConnectionRefusal* refusal = nullptr;
  if (!CheckOpening(fd, &refusal)) return false;
  if (refusal != nullptr) {
    Refuse(fd, peer, *refusal);
  } else if (handlers_.make_room(peer, FrontDoor::Lane::kOpen) == FrontDoor::Room::kFree) {
    handlers_.on_connection(fd, peer, FrontDoor::Lane::kOpen);
  } else {
    Wait(fd, peer, FrontDoor::Lane::kOpen);
  }
  return true;
}

bool TcpListener::CheckOpening(int fd, const ConnectionRefusal** refusal) const {
  char bytes[kOpeningBytes];
  const ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  *refusal = nullptr;
  if (size <= 0) {
    *refusal = &connection_refusal::kClosed;
    return true;
  }
  const TcpOpening opening = OpeningOf({bytes, static_cast<std::size_t>(size)});
  if (opening == TcpOpening::kOther) {
    *refusal = &connection_refusal::kGarbage;
  } else if ((opening == TcpOpening::kTls) != terms_.tls) {
    *refusal = terms_.tls ? &connection_refusal::kPlaintext : &connection_refusal::kTls;
  }
  return true;
}

void TcpListener::Wait(int fd, const std::string& peer, FrontDoor::Lane lane) {
  const auto left = waiting_.Add({.fd = fd, .peer = peer, .lane = lane, .since = Clock::now()});
  if (!left.has_value()) return;
  if (left->is_flood) {
    close(left->fd);
    return;
  }
  Refuse(left->fd, left->peer, connection_refusal::kCrowded);
  std::this_thread::sleep_for(kOffenderPace);
}

void TcpListener::AdmitWaiting() {
  const Clock::time_point now = Clock::now();
  if (waiting_.empty() || now < next_admission_) return;
  next_admission_ = now + kAdmitEvery;
  // A thousand guests of a host that has no room must not delay those of others.
  waiting_.Offer(FrontDoor::Lane::kOpen, WaitingRoom::kMaxGuests,
                 [this](WaitingRoom::Guest& guest) { return AdmitInTurn(guest); });
  waiting_.Offer(FrontDoor::Lane::kSlow, kOfferedAtOnce,
                 [this](WaitingRoom::Guest& guest) { return AdmitSlowly(guest); });
}

WaitingRoom::Answer TcpListener::AdmitInTurn(WaitingRoom::Guest& guest) const {
  using Answer = WaitingRoom::Answer;
  if (handlers_.is_blocked(guest.peer)) {  // since it came
    guest.lane = FrontDoor::Lane::kSlow;
    return Answer::kLeft;
  }
  const FrontDoor::Room room = handlers_.make_room(guest.peer, FrontDoor::Lane::kOpen);
  if (room != FrontDoor::Room::kFree) return room == FrontDoor::Room::kIsFull ? Answer::kEnough : Answer::kLeft;
  handlers_.on_connection(guest.fd, guest.peer, FrontDoor::Lane::kOpen);
  return Answer::kTaken;
}

WaitingRoom::Answer TcpListener::AdmitSlowly(WaitingRoom::Guest& guest) {
  using Answer = WaitingRoom::Answer;
  if (Clock::now() < guest.since + kShortestWait) return Answer::kLeft;
  const ConnectionRefusal* refusal = nullptr;
  if (!CheckOpening(guest.fd, &refusal)) return Answer::kLeft;
  int num_unread = 0;
  if (refusal == nullptr && ioctl(guest.fd, FIONREAD, &num_unread) == 0 && num_unread > kMaxOpeningBytes) {
    // Once closed, it would come again immediately.
    guest.is_flood = true;
    handlers_.on_refusal(guest.peer, connection_refusal::kBytes);
    return Answer::kLeft;
  }
  if (refusal != nullptr) {
    Refuse(guest.fd, guest.peer, *refusal);
    return Answer::kTaken;
  }
  if (handlers_.make_room(guest.peer, FrontDoor::Lane::kSlow) != FrontDoor::Room::kFree) return Answer::kEnough;
  handlers_.on_connection(guest.fd, guest.peer, FrontDoor::Lane::kSlow);
  return Answer::kTaken;
}

void TcpListener::Refuse(int fd, const std::string& peer, const ConnectionRefusal& refusal) const {
  close(fd);
  handlers_.on_refusal(peer, refusal);
}

int TcpListener::CloseLate() {
  const Clock::time_point now = Clock::now();
  for (; !silent_.empty() && silent_.front().until <= now; silent_.pop_front()) {
    Refuse(silent_.front().fd, silent_.front().peer, connection_refusal::kSilent);
  }
  while (const auto late = waiting_.TakeLate(now)) {
    if (late->is_flood) {
      close(late->fd);
      continue;
    }
    const bool is_slow = late->lane == FrontDoor::Lane::kSlow;
    Refuse(late->fd, late->peer, is_slow ? connection_refusal::kBlocked : connection_refusal::kCrowded);
  }
  if (!waiting_.empty()) return static_cast<int>(kAdmitEvery.count());
  if (silent_.empty()) return -1;
  return static_cast<int>(std::chrono::ceil<milliseconds>(silent_.front().until - now).count());
}

void TcpListener::ReportError(const char* what) const {
  handlers_.on_error(absl::ErrnoToStatus(errno, what));
  std::this_thread::sleep_for(kPause);
}

}  // namespace kubebeast
