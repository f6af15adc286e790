// One stream of the wire contract: the handshake, then observations out and actions in until either side ends it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "call.h"
#include "incoming.h"
#include "lockstep.h"
#include "outgoing.h"
#include "settings.h"
#include "sync/clock.h"

namespace kubebeast::client {

// Session driven by the events of its call. Not thread-safe.
class Session {
 public:
  // The objects that it refers to must outlive it.
  Session(const Settings& settings, std::unique_ptr<Call> call, Lockstep* lockstep, ActionMemory* actions);

  // Handles an event from the call's queue.
  void OnEvent(void* tag, bool ok);
  // Returns the time at which OnDeadline is due.
  Clock::time_point deadline() const { return deadline_; }
  void OnDeadline();

  // Sends the step if it is complete and due.
  void TrySend();
  // Ends the stream as planned; at once if it was never welcomed.
  void SayBye(std::uint8_t reason, std::string_view detail);
  void Cancel();

  bool welcomed() const { return welcomed_at_.has_value(); }
  const std::string& run_id() const { return run_id_; }
  // Returns true if all events are in: the stream is over, and this object may be destroyed.
  bool over() const { return finished_ && call_->idle(); }
  // Returns the result of the stream: the learner's status, or its violation of the contract.
  absl::Status end() const;
  // Returns true if another stream would be refused, too.
  bool refused() const;
  // Returns the time since the Welcome; 0 before.
  Clock::duration played() const;

 private:
  void Read();
  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  absl::Status OnWelcome(const Welcome& welcome);
  absl::Status OnActions(const Actions& actions);
  // Ignores the rest of the stream.
  void GiveUp(const absl::Status& reason, bool refused = false);
  std::uint64_t EnvMicroseconds() const;

  const Settings& settings_;
  const std::unique_ptr<Call> call_;
  Lockstep& lockstep_;
  ActionMemory& actions_;

  Clock::time_point deadline_;
  std::optional<Clock::time_point> welcomed_at_;
  std::string run_id_;
  std::uint64_t learner_minor_ = 0;
  std::unique_ptr<ObservationsEncoder> encoder_;  // set by the Welcome
  std::uint64_t step_ = 0;                        // the next step to send, or the one under way
  bool awaiting_actions_ = false;
  bool writing_ = false;
  bool reading_ = false;
  bool traced_ = false;
  Clock::time_point acted_at_;      // time of the actions of a traced step
  std::optional<grpc::Slice> bye_;  // empty, or not written yet
  bool ending_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  bool refused_ = false;
  std::optional<absl::Status> given_up_;
};

}  // namespace kubebeast::client
