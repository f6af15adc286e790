// Messages between a stream and its peer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "calls/message.h"
#include "calls/transport.h"
#include "stats/stats.h"

namespace kubebeast {

// Scheduler of one read and one write at a time. A message waits until the one before it is written. Not thread-safe.
class Exchange {
 public:
  // bytes_sent: counter to which the size of each sent message is added.
  Exchange(Transport& transport, Stats::Value& bytes_sent) : transport_(transport), bytes_sent_(bytes_sent) {}

  bool reading() const { return reading_; }
  // Returns true if a message waits because the peer has not taken the one before it.
  bool waits_for_peer() const { return !next_.empty(); }

  void Read() {
    reading_ = true;
    transport_.Read();
  }

  // Sends the message, and begins to read the peer's reply if no read is under way.
  void Send(std::string message) {
    if (writing_) {
      next_ = std::move(message);
      return;
    }
    bytes_sent_ += static_cast<std::int64_t>(message.size());
    writing_ = true;
    if (std::exchange(reading_, true)) {
      transport_.Write(Message(message));
    } else {
      transport_.Exchange(Message(message));
    }
  }

  void OnRead() { reading_ = false; }

  // goes_on: the waiting message, if any, is sent next.
  void OnWritten(bool goes_on) {
    writing_ = false;
    if (goes_on && waits_for_peer()) Send(std::exchange(next_, {}));
  }

 private:
  Transport& transport_;
  Stats::Value& bytes_sent_;
  std::string next_;  // empty, or the message after the one under way
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace kubebeast
