// Budget of one TCP connection: bytes and calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "access/token_bucket.h"
#include "sync/mutex.h"

namespace kubebeast {

// A TCP connection with limits on its bytes and calls. Bytes are counted as the kernel receives them, below gRPC and
// TLS, so frames that gRPC ignores count, too. A connection begins with kNewcomerBytes; a stream adds its longest step,
// and each of its messages its own size. Frames without a message add nothing. Thread-safe; never blocks.
class Connection {
 public:
  static constexpr std::uint64_t kNewcomerBytes = 64U << 10U;
  // Until the first call of a connection in the slow lane: a TLS handshake, headers, and a full window of a Hello.
  static constexpr std::uint64_t kSlowNewcomerBytes = 24U << 10U;
  // For the longest Hello with its frames: once before the first stream, and then if no other Hello is expected.
  static constexpr std::uint64_t kLongHelloBytes = 320U << 10U;
  // For each other Hello.
  static constexpr std::uint64_t kHelloBytes = 16U << 10U;
  // For the frames, TLS records and acknowledgments of a message.
  static constexpr std::uint64_t kMessageOverheadBytes = 1024;
  // Once for a connection with a stream: a message above the limit, until its sender learns of the refusal.
  static constexpr std::uint64_t kRefusedMessageBytes = 4U << 20U;
  // For the pings of a connection with a stream.
  static constexpr double kBytesPerSecond = 2048;
  static constexpr int kNewcomerWindowBytes = 16 << 10;

  // Calls of ActorPool.Act that may be open at once. Env-servers use one connection per stream. RFC 9113, section
  // 6.5.2, asks for at least 100.
  static constexpr int kMaxOpenActs = 100;
  // Without an accepted stream: calls of Act that end with an offense, and calls that are cancelled.
  static constexpr int kMaxOffences = 4;
  static constexpr int kMaxCancelled = 2;

  enum class Condition : std::uint8_t { kFine, kOverBudget, kGone };
  enum class ActEnd : std::uint8_t { kInPeace, kOffence, kCancelled };

  // fd: a duplicate that the connection owns and closes. peer: "ipv4:10.0.0.7:4431" or "ipv6:[::1]:4431". bytes: budget
  // until the first call.
  Connection(std::uint64_t id, std::string peer, int fd, std::uint64_t bytes = kNewcomerBytes);
  ~Connection() { Release(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint64_t id() const { return id_; }
  const std::string& peer() const { return peer_; }
  // Returns true for the first call only.
  bool MarkRefused() { return !refused_.exchange(true); }
  bool refused() const { return refused_; }
  bool has_called() const { return has_called_; }
  // Bytes that have come in until the last Look.
  std::uint64_t num_received() const { return num_received_; }

  // Compares the received bytes with the budget.
  Condition Look(Clock::time_point now);
  // Ends the connection for both sides and discards unread data.
  void Shut();
  // Closes the descriptor. Other descriptors of the connection stay open.
  void Release();
  // Has the descriptor's epoll set report arriving data, or only the end.
  void Watch(int epoll, bool every_arrival, bool add);

  // Count a new call, and return false if there are too many.
  bool OnShortCall(Clock::time_point now);
  bool OnAct(Clock::time_point now);
  // Must follow each OnAct. Returns false if too many calls ended this way.
  bool OnActEnd(ActEnd end);

  // The share of a stream in the budget, for StreamPass. GiveBack returns the bytes of ExpectHello and Accept.
  std::uint64_t ExpectHello();
  std::uint64_t Accept(std::uint64_t step_bytes);
  void GiveBack(std::uint64_t bytes, bool was_hello);
  void OnMessage(std::size_t bytes);

 private:
  void Reserve(std::uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::uint64_t id_;
  const std::string peer_;
  std::atomic<bool> refused_ = false;
  std::atomic<bool> has_called_ = false;
  std::atomic<std::uint64_t> num_received_ = 0;

  Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t allowed_ ABSL_GUARDED_BY(mutex_);                   // in total
  std::uint64_t reserve_ ABSL_GUARDED_BY(mutex_) = kNewcomerBytes;  // at most, beyond the received bytes
  Clock::time_point looked_at_ ABSL_GUARDED_BY(mutex_);
  bool has_stream_ ABSL_GUARDED_BY(mutex_) = false;  // or had one
  bool had_long_hello_ ABSL_GUARDED_BY(mutex_) = false;
  int num_hellos_ ABSL_GUARDED_BY(mutex_) = 0;  // expected now
  int num_acts_ ABSL_GUARDED_BY(mutex_) = 0;    // open now
  int num_offences_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  TokenBucket acts_ ABSL_GUARDED_BY(mutex_){2 * kMaxOpenActs, 20};
  TokenBucket short_calls_ ABSL_GUARDED_BY(mutex_){16, 2};  // before the first stream
};

}  // namespace kubebeast
