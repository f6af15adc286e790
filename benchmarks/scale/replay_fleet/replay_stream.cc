#include "replay_stream.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace replay {
namespace {

constexpr double kBucketsPerE = 50;  // a bucket is e^(1/50) times as wide as the one before

// Tags of the contract's fields: field number << 3 | wire type.
constexpr char kObservationsTag = 2 << 3 | 2;
constexpr char kStepTag = 1 << 3;

void AppendVarint(std::string& out, std::uint64_t value) {
  for (; value > 0x7F; value >>= 7U) out.push_back(static_cast<char>(value | 0x80U));
  out.push_back(static_cast<char>(value));
}

grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

void Latencies::Add(Clock::duration time) {
  const double us = std::chrono::duration<double, std::micro>(time).count();
  const auto bucket = static_cast<std::size_t>(std::max(0.0, std::log(us) * kBucketsPerE));
  ++counts_[std::min(bucket, kBuckets - 1)];
}

void Latencies::Clear() {
  for (auto& count : counts_) count = 0;
}

std::string Latencies::Describe() const {
  std::string text;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (counts_[bucket] == 0) continue;
    const double us = std::exp(static_cast<double>(bucket) / kBucketsPerE);
    text += std::to_string(us) + ":" + std::to_string(counts_[bucket]) + " ";
  }
  return text;
}

ReplayStream::ReplayStream(const Load& load, Counts& counts, grpc::CompletionQueue& queue, std::uint64_t number)
    : load_(load),
      counts_(counts),
      queue_(queue),
      random_(static_cast<std::minstd_rand::result_type>(number + 1)),
      channel_(grpc::CreateCustomChannel(load.address, grpc::InsecureChannelCredentials(), OwnConnection())) {
  context_.set_wait_for_ready(true);
  call_ = grpc::GenericStub(channel_).PrepareCall(&context_, "/kubebeast.v1.ActorPool/Act", &queue_);
  call_->StartCall(&started_);
}

void ReplayStream::OnStarted(bool ok) {
  if (!ok) return OnRead(false);
  const grpc::Slice hello(load_.messages[0]);
  Write(grpc::ByteBuffer(&hello, 1));
  call_->Read(&reply_, &read_);
}

void ReplayStream::OnRead(bool ok) {
  if (!ok) {
    std::cerr << "a stream ended after " << step_ << " steps\n";
    std::_Exit(1);
  }
  const Clock::time_point now = Clock::now();
  call_->Read(&reply_, &read_);
  if (!std::exchange(is_welcome_, true)) {
    ++counts_.welcomed;
  } else {
    if (step_ % load_.unroll_length != 0) counts_.latencies.Add(now - sent_);
    ++counts_.steps;
    ++step_;
  }
  Think();
}

void ReplayStream::Think() {
  if (load_.think.count() == 0) return OnThought(true);
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(load_.think * spread(random_));
  alarm_.Set(&queue_, std::chrono::system_clock::now() + time, &thought_);
}

void ReplayStream::OnThought(bool /*ok*/) {
  sent_ = Clock::now();
  Write(Observations());
}

void ReplayStream::OnWritten(bool ok) {
  writing_ = false;
  if (ok && std::exchange(has_next_, false)) Write(std::move(next_));
}

void ReplayStream::Write(grpc::ByteBuffer message) {
  if (writing_) {
    next_ = std::move(message);
    has_next_ = true;
    return;
  }
  writing_ = true;
  call_->Write(message, &written_);
}

grpc::ByteBuffer ReplayStream::Observations() const {
  const std::size_t num_repeated = load_.messages.size() - 2;
  const std::string& body = load_.messages[step_ == 0 ? 1 : 2 + (step_ - 1) % num_repeated];
  std::string step;
  if (step_ > 0) {
    step.push_back(kStepTag);
    AppendVarint(step, step_);
  }
  std::string head(1, kObservationsTag);
  AppendVarint(head, step.size() + body.size());
  const grpc::Slice slices[] = {grpc::Slice(head + step),
                                grpc::Slice(body.data(), body.size(), grpc::Slice::STATIC_SLICE)};
  return {slices, 2};
}

}  // namespace replay
