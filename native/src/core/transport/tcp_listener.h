// Accepts TCP connections for a gRPC server, except those that gRPC could only fail with.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "access/connection_refusal.h"
#include "sync/clock.h"

namespace kubebeast {

// gRPC, whose own listener would set up HTTP/2 for everybody, hears only of connections that begin as gRPC begins, with
// TLS or without: whoever dials speaks first. An offender's connection is held for a second and then closed, unread:
// an offender that waits for an answer comes back less often. One thread, from Start to the end.
class TcpListener {
 public:
  // What the thread calls. Peers are named as gRPC names them: "ipv4:10.0.0.7:4431", "ipv6:[::1]:4431".
  struct Handlers {
    // Takes over the file descriptor of a connection.
    std::function<void(int fd, const std::string& peer)> on_connection;
    std::function<bool(const std::string& peer)> is_blocked;
    std::function<void(const std::string& peer, const ConnectionRefusal& refusal)> on_refusal;
    // Accepting fails, and is tried again until it succeeds. May be called often.
    std::function<void(const absl::Status& status)> on_error;
  };
  struct Terms {
    bool tls = false;                      // must connections begin with TLS
    std::chrono::milliseconds patience{};  // with those that send nothing
  };

  // Binds every address that "host:port" stands for (getaddrinfo(3)); port 0 picks one. Unavailable when that fails.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Bind(const std::string& address);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }

  // Begins to accept; once.
  void Start(const Terms& terms, Handlers handlers);

 private:
  TcpListener() = default;
  absl::Status Listen(const std::string& host, const std::string& port);
  void Accept();
  void AcceptFrom(int listening);
  // Hands the connection over, or closes it; false where its first bytes have not come yet.
  bool Judge(int fd, const std::string& peer);
  void Refuse(int fd, const std::string& peer, const ConnectionRefusal& refusal);
  void Hold(int fd);
  // Closes what was held or waited for long enough; milliseconds until the next, -1 without one.
  int CloseLate();
  void ReportError(const char* what);

  // A connection of which nothing has come yet, or one that is held.
  struct Open {
    int fd;
    std::string peer;
    Clock::time_point until;
  };

  int port_ = 0;
  std::vector<int> listening_;
  std::deque<Open> silent_;  // oldest first
  std::deque<Open> held_;    // oldest first
  int wake_[2] = {-1, -1};   // a pipe; its end wakes the thread
  std::atomic<bool> stopping_ = false;
  Terms terms_;
  Handlers handlers_;
  std::thread thread_;
};

}  // namespace kubebeast
