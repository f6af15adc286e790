// TCP listener of a gRPC server, which refuses connections that gRPC could not serve.
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
#include "door/connection_refusal.h"
#include "door/front_door.h"
#include "door/waiting_room.h"
#include "sync/clock.h"

namespace kubebeast {

// A replacement of gRPC's own listener, which would set up HTTP/2 for every connection. gRPC gets only connections that
// begin like gRPC, with or without TLS: the dialing side sends first. Connections of hosts that offend too often wait,
// and are admitted slowly, as a peer with a token may share their address. One thread, from Start to destruction.
class TcpListener {
 public:
  // Callbacks of the thread. Peers are in gRPC's notation: "ipv4:10.0.0.7:4431", "ipv6:[::1]:4431".
  struct Handlers {
    // Takes over the file descriptor of a connection.
    std::function<void(int fd, const std::string& peer, FrontDoor::Lane lane)> on_connection;
    std::function<bool(const std::string& peer)> is_blocked;
    // Returns kFree if on_connection may be called now for the peer. Called before each on_connection.
    std::function<FrontDoor::Room(const std::string& peer, FrontDoor::Lane lane)> make_room;
    std::function<void(const std::string& peer, const ConnectionRefusal& refusal)> on_refusal;
    // Receives the error of a failed accept, which is retried until it succeeds. May be called often.
    std::function<void(const absl::Status& status)> on_error;
  };
  struct Terms {
    bool tls = false;                      // if true, connections must begin with TLS
    std::chrono::milliseconds patience{};  // time for the first byte
  };

  // Binds every address of "host:port" (getaddrinfo(3)); port 0 picks a free one. Returns Unavailable if that fails.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Bind(const std::string& address);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }

  // Starts to accept connections; once. Returns Unavailable if the system allows no more threads.
  absl::Status Start(const Terms& terms, Handlers handlers);

 private:
  TcpListener() = default;
  absl::Status Listen(const std::string& host, const std::string& port);
  void Accept();
  void AcceptAllFrom(int listening);
  // Returns false if no connection is pending.
  bool AcceptFrom(int listening);
  // Hands the connection over, lets it wait or closes it; returns false if its first bytes have not come yet.
  bool Judge(int fd, const std::string& peer);
  // Sets `refusal`, to null if the first bytes are gRPC's; returns false if they have not come yet.
  bool CheckOpening(int fd, const ConnectionRefusal** refusal) const;
  void Wait(int fd, const std::string& peer, FrontDoor::Lane lane);
  void AdmitWaiting();
  WaitingRoom::Answer AdmitInTurn(WaitingRoom::Guest& guest) const;
  WaitingRoom::Answer AdmitSlowly(WaitingRoom::Guest& guest);
  void Refuse(int fd, const std::string& peer, const ConnectionRefusal& refusal) const;
  // Closes connections that were silent or waited for too long. Returns the milliseconds until the next check, or -1 if
  // there is nothing to check.
  int CloseLate();
  void ReportError(const char* what) const;

  // A connection that has sent nothing yet.
  struct Open {
    int fd;
    std::string peer;
    Clock::time_point until;
  };

  int port_ = 0;
  std::vector<int> listening_;
  std::deque<Open> silent_;  // oldest first
  WaitingRoom waiting_;
  Clock::time_point next_admission_;
  int wake_[2] = {-1, -1};  // a pipe; closing it wakes the thread
  std::atomic<bool> stopping_ = false;
  Terms terms_;
  Handlers handlers_;
  std::thread thread_;
};

}  // namespace kubebeast
