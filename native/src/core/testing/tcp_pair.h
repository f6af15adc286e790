// Both ends of a TCP connection, for tests of code that inspects one.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "testing/raw_connection.h"

namespace kubebeast {

class TcpPair {
 public:
  TcpPair() {
    // One listener for all pairs, so that no two of them have the same port on the client's side.
    static const int listening = Listen();
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
    client_.Connect(ntohs(address.sin_port));
    server_ = accept(listening, nullptr, nullptr);
    EXPECT_GE(server_, 0);
  }
  ~TcpPair() { CloseServer(); }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;

  RawConnection& client() { return client_; }
  int server() const { return server_; }
  // Closes the end that gRPC would own.
  void CloseServer() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }
  // Sends that many bytes, and reads them at the other end.
  void Pass(std::size_t bytes) {
    constexpr std::size_t kPiece = 4096;
    char piece[kPiece] = {};
    for (std::size_t passed = 0; passed < bytes; passed += kPiece) {
      client_.Send(std::string(std::min(kPiece, bytes - passed), 'x'));
      EXPECT_GT(recv(server_, piece, std::min(kPiece, bytes - passed), MSG_WAITALL), 0);
    }
  }

 private:
  static int Listen() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listening, 1), 0);
    return listening;
  }

  RawConnection client_;
  int server_ = -1;
};

}  // namespace kubebeast
