// Accepts TCP connections for a gRPC server, except from hosts that it knows as offenders.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kubebeast {

// An offender's connection is held for a second and then closed, unread: whoever waits for an answer has less time to
// come again, and gRPC, whose own listener would set up HTTP/2 for it, never hears of it. One thread, from Start to the
// end.
class TcpListener {
 public:
  // Takes over the file descriptor of a connection.
  using OnConnection = std::function<void(int fd)>;
  using IsBlocked = std::function<bool(const std::string& host)>;

  // Binds every address that "host:port" stands for (getaddrinfo(3)); port 0 picks one. Unavailable when that fails.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Bind(const std::string& address);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }

  // Begins to accept; once.
  void Start(OnConnection on_connection, IsBlocked is_blocked);

 private:
  TcpListener() = default;
  absl::Status Listen(const std::string& host, const std::string& port);
  void Accept();
  void AcceptFrom(int listening);
  void Hold(int fd);
  // Closes what was held for long enough; milliseconds until the next, -1 without one.
  int CloseHeld();

  int port_ = 0;
  struct Held {
    int fd;
    std::chrono::steady_clock::time_point until;
  };

  std::vector<int> listening_;
  std::deque<Held> held_;   // oldest first
  int wake_[2] = {-1, -1};  // a pipe; its end wakes the thread
  OnConnection on_connection_;
  IsBlocked is_blocked_;
  std::thread thread_;
};

}  // namespace kubebeast
