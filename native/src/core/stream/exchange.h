// What a stream and its peer send each other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "calls/message.h"
#include "calls/transport.h"
#include "stats/stats.h"

namespace kubebeast {

// One read and one write at a time. A message waits for the transport's word on the one before it. Not thread-safe.
class Exchange {
 public:
  // bytes_sent: grows by what is sent.
  Exchange(Transport& transport, Stats::Value& bytes_sent) : transport_(transport), bytes_sent_(bytes_sent) {}

  bool reading() const { return reading_; }
  // Whether a message waits, as the peer has not taken the one before it.
  bool waits_for_peer() const { return !next_.empty(); }

  void Read() {
    reading_ = true;
    transport_.Read();
  }

  // And reads what the peer says to it.
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

  // goes_on: the message that waits follows.
  void OnWritten(bool goes_on) {
    writing_ = false;
    if (goes_on && waits_for_peer()) Send(std::exchange(next_, {}));
  }

 private:
  Transport& transport_;
  Stats::Value& bytes_sent_;
  std::string next_;  // empty, or what follows the message on its way
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace kubebeast
