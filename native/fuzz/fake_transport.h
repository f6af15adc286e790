// A call without a network.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "script.h"
#include "stream/actor_stream.h"
#include "stream/transport.h"

namespace kubebeast::fuzz {

// Holds a stream as gRPC's reactors do, keeps what it starts until it is told how that went, and requires that the
// stream keeps to the contract of Transport.
class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(std::shared_ptr<PoolContext> pool)
      : stream_(std::make_shared<ActorStream>(std::move(pool), *this, "ipv4:192.0.2.1:4431")) {
    stream_->Start();
  }

  void Read(grpc::ByteBuffer* message) override {
    Require(!finished() && read_ == nullptr, "one read at a time, none after the end");
    read_ = message;
  }
  void Write(const grpc::ByteBuffer* message) override {
    Require(!finished() && write_ == nullptr, "one write at a time, none after the end");
    write_ = message;
  }
  void Finish(const absl::Status& status) override {
    Require(!finished(), "a call is finished once");
    status_ = status;
  }
  void Cancel() override { Require(finished(), "only a peer that does not take its status is cut off"); }

  ActorStream& stream() const { return *stream_; }
  bool finished() const { return status_.has_value(); }
  bool writing() const { return write_ != nullptr; }

  // A message of the peer; false where it is no longer read.
  bool Deliver(const std::string& bytes, std::size_t slice_size) {
    if (finished()) return false;
    Require(read_ != nullptr, "a read is always outstanding");
    std::vector<grpc::Slice> slices;
    for (std::size_t begin = 0; begin < bytes.size(); begin += slice_size) {
      slices.emplace_back(bytes.data() + begin, std::min(slice_size, bytes.size() - begin));
    }
    *std::exchange(read_, nullptr) = grpc::ByteBuffer(slices.data(), slices.size());
    stream_->OnReadDone(true);
    return true;
  }

  // The peer closes its side, or the call breaks.
  void FailRead() {
    if (std::exchange(read_, nullptr) != nullptr) stream_->OnReadDone(false);
  }

  // The write is done; returns what was written, if anything was.
  std::optional<std::string> CompleteWrite(bool ok) {
    if (write_ == nullptr) return std::nullopt;
    std::vector<grpc::Slice> slices;
    Require(std::exchange(write_, nullptr)->Dump(&slices).ok(), "a written message can be read");
    std::string bytes;
    for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    stream_->OnWriteDone(ok);
    return bytes;
  }

  // The last event of a finished call; the transport must go now. Reads and writes end before, except that the side
  // that dialled does not report them after the end.
  void Done(bool dialled) {
    Require(finished(), "only a finished call is done");
    if (!dialled) {
      FailRead();
      CompleteWrite(false);
    }
    stream_->OnDone();
  }

 private:
  const std::shared_ptr<ActorStream> stream_;
  grpc::ByteBuffer* read_ = nullptr;
  const grpc::ByteBuffer* write_ = nullptr;
  std::optional<absl::Status> status_;
};

}  // namespace kubebeast::fuzz
