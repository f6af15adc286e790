// Times of new dials to a learner, and the log lines about them.
#pragma once

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "settings.h"
#include "sync/clock.h"

namespace kubebeast::client {

// The rules of the env-server in Python (kubebeast_envserver/stream/dialer.py). Not thread-safe.
class Redial {
 public:
  explicit Redial(const Settings& settings) : settings_(settings) {}

  // Records a stream that has ended or could not be opened. played: time since its Welcome, zero without one.
  // Returns the line for the log; empty if it is no news.
  std::string NoteEnd(const absl::Status& end, Clock::duration played);

  // Time drawn by NoteEnd: jittered, from a range that doubles up to the longest one.
  Clock::time_point due() const { return due_; }

 private:
  Clock::duration NextDelay();
  std::string NoteFailure(const std::string& reason);

  const Settings& settings_;
  unsigned num_delays_ = 0;    // delays since a stream was last played for a while
  unsigned num_failures_ = 0;  // dials without a Welcome, in a row
  absl::string_view hint_;     // probable cause of the last failures
  unsigned num_hints_ = 0;     // number of failures in a row with this hint
  Clock::time_point due_;
  std::minstd_rand random_{std::random_device{}()};
};

// Returns the probable cause of a refusal, as a side that refuses in a TLS handshake closes the connection without a
// reason; empty if there was no refusal.
absl::string_view HintFor(const TlsFiles& tls, absl::string_view reason);

}  // namespace kubebeast::client
