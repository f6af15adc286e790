// One env-server's stream that repeats recorded messages; thousands of them share a thread.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace replay {

using Clock = std::chrono::steady_clock;

// Times in buckets that are 2 % wide; counted by one thread, read and cleared by another.
class Latencies {
 public:
  void Add(Clock::duration time);
  void Clear();
  // "microseconds:count ..." of the buckets that are not empty, each by its lower bound.
  std::string Describe() const;

 private:
  static constexpr std::size_t kBuckets = 1024;
  std::array<std::atomic<std::int64_t>, kBuckets> counts_{};
};

struct Load {
  std::string address;
  std::vector<std::string> messages;  // Hello, opening Observations, those to repeat; Observations without their step
  std::chrono::microseconds think;    // mean time of an environment's step
  std::size_t unroll_length = 0;
};

// What all streams of a process share.
struct Counts {
  Latencies latencies;  // of actions, but of steps that end an unroll: they may be held back
  std::atomic<std::int64_t> welcomed{0};
  std::atomic<std::int64_t> steps{0};
};

// Lives until the end of the process, which it brings about where the learner ends it. For the queue's thread.
class ReplayStream {
 public:
  ReplayStream(const Load& load, Counts& counts, grpc::CompletionQueue& queue, std::uint64_t number);

  // What a tag of the queue is: an event of a stream.
  struct Event {
    ReplayStream* stream = nullptr;
    void (ReplayStream::*on)(bool ok) = nullptr;
  };

 private:
  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnThought(bool ok);

  void Write(grpc::ByteBuffer message);
  // The Observations of step_.
  grpc::ByteBuffer Observations() const;
  void Think();

  const Load& load_;
  Counts& counts_;
  grpc::CompletionQueue& queue_;
  std::minstd_rand random_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Alarm alarm_;
  grpc::ByteBuffer reply_;
  grpc::ByteBuffer next_;  // to be written once what is being written has left
  bool writing_ = false;
  bool has_next_ = false;
  bool is_welcome_ = false;
  std::uint64_t step_ = 0;
  Clock::time_point sent_;
  Event started_{this, &ReplayStream::OnStarted};
  Event read_{this, &ReplayStream::OnRead};
  Event written_{this, &ReplayStream::OnWritten};
  Event thought_{this, &ReplayStream::OnThought};
};

}  // namespace replay
