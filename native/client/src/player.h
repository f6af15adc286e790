// The persistent stream of a program, which survives broken connections.
#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "incoming.h"
#include "kubebeast/client.h"
#include "lockstep.h"
#include "redial.h"
#include "session.h"
#include "settings.h"
#include "sync/mutex.h"

namespace kubebeast::client::internal {

// Player that dials, plays, and dials again. One of the waiting threads drives the stream: it takes the events of the
// call out of gRPC's queue, so that a step costs no switch of threads; the others wait for it. Thread-safe.
class Player {
 public:
  explicit Player(const Options& options);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // The methods of Environment and Stream.
  Status Post(std::uint32_t env, Row row, std::span<const Frame> frames, float reward);
  Status Report(std::uint32_t env, double episode_return, std::uint64_t length);
  Status SetInfo(std::uint32_t env, std::string_view key, double value);
  std::string NextOptions(std::uint32_t env);
  Reply Wait(std::uint32_t env, Clock::time_point deadline);
  Status WaitUntilConnected(Clock::time_point deadline);
  Status status();
  Status Close(Reason reason, std::string_view detail, Clock::time_point deadline);

 private:
  // Members that exist if the options are valid.
  struct Parts {
    explicit Parts(Settings checked);
    const Settings settings;
    Lockstep lockstep;
    ActionMemory actions;
    Redial redial;
    std::unique_ptr<Session> session;  // null without a call
  };

  // Condition that a thread waits for.
  struct Goal {
    enum class Kind : std::uint8_t {
      kReply,      // reply of the environment, or the end of play
      kConnected,  // Welcome, or the end of play
      kNoCall,
      kEnd,  // end of play, without a call
    };
    Kind kind;
    std::uint32_t env = 0;
  };
  bool Reached(const Goal& goal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drives the stream, or waits for the thread that does, until the goal; returns false at the deadline.
  bool MoveUntil(const Goal& goal, Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes one move. Returns false if there was none before the deadline.
  bool Move(Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeEvent(Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dial() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteEnd(const absl::Status& end, Clock::duration played) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Log(std::string line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases the lock for the duration of the writes.
  void WriteLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool connected() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(std::string_view)> log_;
  grpc::CompletionQueue queue_;
  std::thread progress_;

  Mutex mutex_;
  CondVar changed_;
  bool moving_ ABSL_GUARDED_BY(mutex_) = false;  // true while a thread drives the stream
  Status final_ ABSL_GUARDED_BY(mutex_);         // not ok after the final end of play
  bool said_bye_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Parts> parts_ ABSL_GUARDED_BY(mutex_);
  std::string why_not_ ABSL_GUARDED_BY(mutex_);             // reason for which there is no stream
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);  // lines for the log
};

}  // namespace kubebeast::client::internal
