#include "door/tcp_state.h"

// Instead of <netinet/tcp.h>: its tcp_info ends before tcpi_bytes_received.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace kubebeast {
namespace {

// TCP_ESTABLISHED of the kernel (include/net/tcp_states.h), which userspace has in <netinet/tcp.h>.
constexpr std::uint8_t kEstablished = 1;

// Receive buffer of a fresh connection, doubled by the kernel (socket(7), SO_RCVBUF).
constexpr int kFirstBufferBytes = 8192;
// SO_BUF_LOCK of Linux 5.14 (socket(7), include/uapi/asm-generic/socket.h): buffers that the kernel must not resize.
constexpr int kSoBufLock = 72;

}  // namespace

TcpState ReadTcpState(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  TcpState state{.is_established = info.tcpi_state == kEstablished};
  if (size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
    state.bytes_received = info.tcpi_bytes_received;
  }
  return state;
}

void LimitTcpWindow(int fd, int bytes) { setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof(bytes)); }

void StartWithSmallWindows(int listening) {
  int lock = 0;
  socklen_t size = sizeof(lock);
  if (getsockopt(listening, SOL_SOCKET, kSoBufLock, &lock, &size) != 0) return;
  setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &kFirstBufferBytes, sizeof(kFirstBufferBytes));
  const int none = 0;
  setsockopt(listening, SOL_SOCKET, kSoBufLock, &none, sizeof(none));
}

}  // namespace kubebeast
