#include "transport/tcp_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/tcp_opening.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
// When accepting fails, as it does without a file descriptor left, trying again at once would spin.
constexpr milliseconds kPause{10};

// Honest peers speak as soon as they are connected: the oldest of so many is none.
constexpr std::size_t kMaxSilent = 1024;

constexpr milliseconds kHoldFor{1000};
constexpr std::size_t kMaxHeld = 256;
// Offenders who do not wait are accepted at this pace; everybody who is new has to wait for them, streams do not.
constexpr milliseconds kOffenderPace{1};

void SetFlag(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof(value)); }

void MakeNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// As gRPC names it: IPv4 also where it came in through an IPv6 socket.
std::string PeerOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int port = PortOf(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return absl::StrCat("ipv6:[", text, "]:", port);
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
  for (const Open& connection : held_) close(connection.fd);
}

void TcpListener::Start(const Terms& terms, Handlers handlers) {
  terms_ = terms;
  handlers_ = std::move(handlers);
  thread_ = std::thread([this] { Accept(); });
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
      if (polled[1 + i].revents != 0) AcceptFrom(listening_[i]);
    }
  }
}

void TcpListener::AcceptFrom(int listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int fd = accept(listening, reinterpret_cast<sockaddr*>(&address), &size);
  if (fd < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ReportError("accepting a connection");
    return;
  }
  const std::string peer = PeerOf(address);
  if (handlers_.is_blocked(peer)) {
    handlers_.on_refusal(peer, connection_refusal::kBlocked);
    Hold(fd);
    return;
  }
  MakeNonBlocking(fd);
  SetFlag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (Judge(fd, peer)) return;
  silent_.push_back({fd, peer, Clock::now() + terms_.patience});
  if (silent_.size() <= kMaxSilent) return;
  Refuse(silent_.front().fd, silent_.front().peer, connection_refusal::kSilent);
  silent_.pop_front();
}

bool TcpListener::Judge(int fd, const std::string& peer) {
  char bytes[kOpeningBytes];
  const ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    Refuse(fd, peer, connection_refusal::kClosed);
    return true;
  }
  const TcpOpening opening = OpeningOf({bytes, static_cast<std::size_t>(size)});
  if (opening == TcpOpening::kOther) {
    Refuse(fd, peer, connection_refusal::kGarbage);
  } else if ((opening == TcpOpening::kTls) != terms_.tls) {
    Refuse(fd, peer, terms_.tls ? connection_refusal::kPlaintext : connection_refusal::kTls);
  } else {
    handlers_.on_connection(fd, peer);
  }
  return true;
}

void TcpListener::Refuse(int fd, const std::string& peer, const ConnectionRefusal& refusal) {
  close(fd);
  handlers_.on_refusal(peer, refusal);
}

void TcpListener::Hold(int fd) {
  held_.push_back({fd, "", Clock::now() + kHoldFor});
  if (held_.size() <= kMaxHeld) return;
  close(held_.front().fd);
  held_.pop_front();
  std::this_thread::sleep_for(kOffenderPace);
}

int TcpListener::CloseLate() {
  const Clock::time_point now = Clock::now();
  for (; !held_.empty() && held_.front().until <= now; held_.pop_front()) close(held_.front().fd);
  for (; !silent_.empty() && silent_.front().until <= now; silent_.pop_front()) {
    Refuse(silent_.front().fd, silent_.front().peer, connection_refusal::kSilent);
  }
  Clock::time_point next = Clock::time_point::max();
  for (const auto* open : {&held_, &silent_}) {
    if (!open->empty()) next = std::min(next, open->front().until);
  }
  if (next == Clock::time_point::max()) return -1;
  return static_cast<int>(std::chrono::ceil<milliseconds>(next - now).count());
}

void TcpListener::ReportError(const char* what) {
  handlers_.on_error(absl::ErrnoToStatus(errno, what));
  std::this_thread::sleep_for(kPause);
}

}  // namespace kubebeast
