// When a learner is dialed again, and what is said about it.
#pragma once

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "settings.h"
#include "sync/clock.h"

namespace kubebeast::client {

// The same rules as of the env-server in Python (kubebeast_envserver/stream/dialer.py). Not thread-safe.
class Redial {
 public:
  explicit Redial(const Settings& settings) : settings_(settings) {}

  // A stream has ended, or none came about. played: since its Welcome, zero without one.
  // Returns the line for people; empty where it is no news.
  std::string NoteEnd(const absl::Status& end, Clock::duration played);

  // Drawn at NoteEnd: jittered, from a range that doubles up to the longest one.
  Clock::time_point due() const { return due_; }

 private:
  Clock::duration NextDelay();
  std::string NoteFailure(const std::string& reason);

  const Settings& settings_;
  unsigned num_delays_ = 0;    // since a stream was played for a while
  unsigned num_failures_ = 0;  // dials without a Welcome, in a row
  absl::string_view hint_;     // what probably keeps it out, of the last failures
  unsigned num_hints_ = 0;     // in a row, for the same
  Clock::time_point due_;
  std::minstd_rand random_{std::random_device{}()};
};

// What probably keeps the dialer out: a side that refuses in a TLS handshake closes the connection and says no more.
// Empty where nobody has refused.
absl::string_view HintFor(const TlsFiles& tls, absl::string_view reason);

}  // namespace kubebeast::client
