// A call without a network.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "calls/message.h"
#include "calls/transport.h"
#include "script.h"
#include "stream/actor_stream.h"

namespace kubebeast::fuzz {

// Transport that holds a stream as a call does. A read or write stays under way until the fuzz target ends it. Requires
// that the stream keeps to the contract of Transport.
class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(std::shared_ptr<PoolContext> pool)
      : stream_(std::make_shared<ActorStream>(std::move(pool), *this, "ipv4:192.0.2.1:4431")) {
    stream_->Start();
  }

  void Read() override {
    Require(!finished() && !std::exchange(reading_, true), "one read at a time, none after the end");
  }
  void Write(Message message) override {
    Require(!finished() && !write_.has_value(), "one write at a time, none after the end");
    write_ = message.ToString();
  }
  void Exchange(Message message) override {
    Write(std::move(message));
    Read();
    exchanging_ = true;
  }
  void Finish(const absl::Status& status) override {
    Require(!finished(), "a call is finished once");
    status_ = status;
  }
  void Cancel() override { Require(finished(), "only a peer that does not take its status is cut off"); }

  ActorStream& stream() const { return *stream_; }
  bool finished() const { return status_.has_value(); }

  // Delivers a message of the peer, which has taken the written one; returns false if it is not read, or not yet.
  bool Deliver(const std::string& bytes, std::size_t slice_size) {
    if (finished() || !reading_) return false;
    if (exchanging_) CompleteWrite(true);
    std::vector<absl::string_view> slices;
    for (std::size_t begin = 0; begin < bytes.size(); begin += slice_size) {
      slices.push_back(absl::string_view(bytes).substr(begin, slice_size));
    }
    EndRead(Message(slices));
    return true;
  }

  // Ends the read as if the peer closes its side, or the call breaks.
  void FailRead() {
    if (exchanging_) return BreakExchange();
    if (reading_) return EndRead(Message());
    stream_->OnPeerGone();
  }

  // Completes the write; returns the written message, if any.
  std::optional<std::string> CompleteWrite(bool ok) {
    if (!write_.has_value()) return std::nullopt;
    const std::optional<std::string> bytes = std::exchange(write_, std::nullopt);
    if (exchanging_ && !ok) {
      BreakExchange();
    } else if (!exchanging_) {
      stream_->OnWritten(ok);
    }
    return bytes;
  }

  // Sends the last event of a finished call; the transport must be destroyed now. Reads and writes end before, except
  // that the side that dialed does not report them after the end.
  void Done(bool dialed) {
    Require(finished(), "only a finished call is done");
    if (!dialed) {
      if (reading_) FailRead();
      CompleteWrite(false);
    }
    stream_->OnDone();
  }

 private:
  // Ends the read; an exchange reports its write only after its read.
  void EndRead(Message message) {
    if (std::exchange(exchanging_, false)) stream_->OnWritten(true);
    reading_ = false;
    stream_->OnRead(std::move(message));
  }

  void BreakExchange() {
    exchanging_ = reading_ = false;
    write_.reset();
    stream_->OnWritten(false);
    stream_->OnRead(Message());
  }

  const std::shared_ptr<ActorStream> stream_;
  bool reading_ = false;
  bool exchanging_ = false;
  std::optional<std::string> write_;
  std::optional<absl::Status> status_;
};

}  // namespace kubebeast::fuzz
