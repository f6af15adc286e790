// A TCP connection that sends arbitrary bytes, for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "testing/test_patience.h"

namespace kubebeast {

class RawConnection {
 public:
  // Makes a socket that is not connected yet.
  RawConnection() : fd_(socket(AF_INET, SOCK_STREAM, 0)) { EXPECT_GE(fd_, 0); }
  explicit RawConnection(int port) : RawConnection() { Connect(port); }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Connects to a port of 127.0.0.1.
  void Connect(int port) { EXPECT_TRUE(TryConnect(port)); }
  // Returns false if nothing listens on the port.
  bool TryConnect(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  void Send(std::string_view bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  // Returns false once the connection is closed.
  bool TrySend(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  int fd() const { return fd_; }

  // Returns the name of the peer as gRPC formats it.
  std::string peer() const {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return "ipv4:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  // Blocks until these bytes are received; returns false if they are not.
  bool Receives(std::string_view bytes) {
    std::string received;
    char piece[4096];
    SetPatience();
    while (received.find(bytes) == std::string::npos) {
      const ssize_t size = recv(fd_, piece, sizeof(piece), 0);
      if (size <= 0) return false;
      received.append(piece, static_cast<std::size_t>(size));
    }
    return true;
  }

  // Blocks until the other side has closed; returns false if it does not.
  bool IsClosed() {
    SetPatience();
    char byte = 0;
    ssize_t size = 1;
    while (size > 0) size = recv(fd_, &byte, 1, 0);
    return size == 0 || errno == ECONNRESET;
  }

 private:
  void SetPatience() {
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  }

  const int fd_;
};

inline constexpr std::string_view kHttp2Opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr std::string_view kTlsOpening = "\x16\x03\x01\x02\x00\x01";

}  // namespace kubebeast
