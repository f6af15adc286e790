#include "tcp_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace kubebeast {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// When the process has no file descriptor left, accepting again at once would spin.
constexpr milliseconds kPause{10};

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
std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
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
  if (wake_[1] >= 0) close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  if (wake_[0] >= 0) close(wake_[0]);
  for (const int fd : listening_) close(fd);
  for (const Held& held : held_) close(held.fd);
}

void TcpListener::Start(OnConnection on_connection, IsBlocked is_blocked) {
  on_connection_ = std::move(on_connection);
  is_blocked_ = std::move(is_blocked);
  thread_ = std::thread([this] { Accept(); });
}

void TcpListener::Accept() {
  std::vector<pollfd> polled{{.fd = wake_[0], .events = POLLIN, .revents = 0}};
  for (const int fd : listening_) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  for (;;) {
    if (poll(polled.data(), polled.size(), CloseHeld()) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) AcceptFrom(polled[i].fd);
    }
  }
}

void TcpListener::AcceptFrom(int listening) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  const int fd = accept(listening, reinterpret_cast<sockaddr*>(&peer), &size);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) std::this_thread::sleep_for(kPause);
    return;
  }
  if (is_blocked_(HostOf(peer))) {
    Hold(fd);
    return;
  }
  MakeNonBlocking(fd);
  SetFlag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  on_connection_(fd);
}

void TcpListener::Hold(int fd) {
  held_.push_back({fd, Clock::now() + kHoldFor});
  if (held_.size() <= kMaxHeld) return;
  close(held_.front().fd);
  held_.pop_front();
  std::this_thread::sleep_for(kOffenderPace);
}

int TcpListener::CloseHeld() {
  const Clock::time_point now = Clock::now();
  while (!held_.empty() && held_.front().until <= now) {
    close(held_.front().fd);
    held_.pop_front();
  }
  if (held_.empty()) return -1;
  return static_cast<int>(std::chrono::ceil<milliseconds>(held_.front().until - now).count());
}

}  // namespace kubebeast
