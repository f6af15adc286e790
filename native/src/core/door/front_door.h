// Admission and removal of the connections that gRPC serves.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/status/status.h"
#include "door/connection.h"
#include "door/connection_refusal.h"
#include "door/slow_lane.h"
#include "sync/mutex.h"

namespace kubebeast {

// A watch over gRPC's connections. gRPC bounds neither the bytes of a connection before its first call nor the number
// of calls that it opens and cancels, so this is done below it. A thread checks each connection through a duplicate of
// its descriptor: at every arrival of data until it has a stream, and then at intervals, unless its host has offended.
// A connection over its budget, or late with its first call, is shut down; to gRPC it looks closed by its peer. The
// duplicate is closed as soon as the connection has ended, as a socket stays in gRPC's epoll set until its last
// descriptor is closed. Thread-safe; only Stop blocks, until the thread has ended.
class FrontDoor {
 public:
  struct Terms {
    std::chrono::milliseconds patience{};  // time for a newcomer's first call
    bool tls = false;
  };
  struct Handlers {
    std::function<void(const std::string& peer, const ConnectionRefusal& refusal)> on_refusal;
    // Returns true if the peer's host has offended lately.
    std::function<bool(const std::string& peer)> is_suspect;
  };
  enum class Lane : std::uint8_t { kOpen, kSlow };
  // Place for one more connection: free, taken by others of its host, or taken by all.
  enum class Room : std::uint8_t { kFree, kHostIsFull, kIsFull };

  // Most newcomers at once: in total, of one host in the open lane, and in the slow lane. A flood is served until the
  // host's first offenses count, which is shorter the fewer of its connections are open.
  static constexpr std::size_t kMaxNewcomers = 256;
  static constexpr std::size_t kMaxNewcomersOfHost = 32;
  static constexpr std::size_t kMaxSlowNewcomers = 192;
  // Most connections that have called and have no stream, such as those of health checks.
  static constexpr std::size_t kMaxWithoutStream = 1024;
  // Time after which a newcomer of the slow lane may be sent away for another one.
  static constexpr std::chrono::milliseconds kSlowLaneTurn{500};

  FrontDoor(const Terms& terms, Handlers handlers);
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // Starts the thread; once. Returns Unavailable if the system allows no more files or threads.
  absl::Status Start();
  // Shuts down every connection that is not trusted.
  void Close();
  // Releases all connections and stops the thread. Idempotent.
  void Stop();

  // Returns kFree if a connection of the peer may be handed to gRPC now. May send away a newcomer that has had its
  // turn, to make room, and charges the slow lane for a connection.
  Room MakeRoom(const std::string& peer, Lane lane, Clock::time_point now);
  // Adds a connection before gRPC gets its descriptor, which is duplicated. Returns false if none is free.
  bool Enter(int fd, const std::string& peer, Lane lane, Clock::time_point now);

  // peer: in gRPC's notation. Returns null for a peer that is local, or has gone.
  std::shared_ptr<Connection> Find(const std::string& peer);
  // Ends the newcomer stage of a connection that has shown a valid token or Hello.
  void Trust(const std::shared_ptr<Connection>& connection);
  // Records the first accepted stream of a connection.
  void Accept(const std::shared_ptr<Connection>& connection);
  // Charges the slow lane, if the peer's connection is in it, for a broken rule.
  void ChargeRefusal(const std::string& peer);
  // Shuts down the connection and reports it once.
  void Refuse(Connection& connection, const ConnectionRefusal& refusal);

  // Returns the number of connections that have not ended.
  std::size_t num_connections();

 private:
  // Stage of a connection: it has not called yet, has called, may have streams, or has ended. Calls of an ended
  // connection may still be on their way to the pool.
  enum class Stage : std::uint8_t { kNew, kWithoutStream, kTrusted, kLeft };
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string host;
    Lane lane;
    Stage stage = Stage::kNew;
    Clock::time_point since;         // time of its entry or end
    std::uint64_t num_paid_for = 0;  // bytes that are charged to the slow lane
  };
  using Entries = std::map<std::uint64_t, Entry>;

  void Watch();
  bool is_empty();
  void Look(std::uint64_t id, Clock::time_point now);
  // Charges the slow lane for the bytes of a newcomer in it since the last call.
  void ChargeBytes(std::uint64_t id, Clock::time_point now);
  // Sends away newcomers that have not called in time.
  void CloseLate(Clock::time_point now);
  // Checks every newcomer, and some of the other connections in turn.
  void Sweep(Clock::time_point now);
  // Releases a connection that has ended.
  void Leave(std::uint64_t id);
  // Forgets connections that ended some time ago, and reports those that ended without a call.
  void ForgetLeft(Clock::time_point now);
  void SetStage(Entry& entry, Stage stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const Entry& entry, int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the newcomer that leaves for another one of the host, or null if none has had its turn. Sets `room` to the
  // reason for its leaving, or to kFree.
  std::shared_ptr<Connection> Replaceable(const std::string& host, Lane lane, Clock::time_point now, Room& room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the oldest newcomer to which `is_meant` applies, or null if it has not had its turn.
  template <typename IsMeant>
  std::shared_ptr<Connection> Oldest(Clock::time_point latest, const IsMeant& is_meant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Connection> OldestWithoutStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Terms terms_;
  const Handlers handlers_;
  int epoll_ = -1;
  int wake_ = -1;  // an eventfd
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
  std::uint64_t swept_ = 0;  // the last id that Sweep looked at

  Mutex mutex_;
  std::uint64_t num_entered_ ABSL_GUARDED_BY(mutex_) = 0;
  Entries entries_ ABSL_GUARDED_BY(mutex_);                                            // by id: oldest first
  std::unordered_map<std::string, std::uint64_t> ids_ ABSL_GUARDED_BY(mutex_);         // by peer
  std::set<std::uint64_t> newcomers_ ABSL_GUARDED_BY(mutex_);                          // oldest first
  std::deque<std::uint64_t> left_ ABSL_GUARDED_BY(mutex_);                             // oldest first
  std::unordered_map<std::string, std::size_t> num_new_open_ ABSL_GUARDED_BY(mutex_);  // by host; none is 0
  std::size_t num_new_slow_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t num_without_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  SlowLane slow_lane_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kubebeast
