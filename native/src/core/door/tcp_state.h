// State of a TCP connection in the kernel (tcp(7), TCP_INFO).
#pragma once

#include <cstdint>
#include <optional>

namespace kubebeast {

struct TcpState {
  bool is_established = false;
  // Received and acknowledged bytes, read or not. Empty on a kernel that does not count them.
  std::optional<std::uint64_t> bytes_received;
};

// Returns the state; is_established is also false if fd is not a TCP connection.
TcpState ReadTcpState(int fd);

// Limits the bytes that may be on their way to this connection at once; bytes that the peer may already send stay
// allowed. Below the limit the kernel still chooses a size by itself.
void LimitTcpWindow(int fd, int bytes);
inline constexpr int kNoTcpWindowLimit = 1 << 30;

// Makes the connections of a listening socket begin with a small window, which grows as they are read. Does nothing on
// kernels before Linux 5.14: there a small beginning would be a permanent limit.
void StartWithSmallWindows(int listening);

}  // namespace kubebeast
