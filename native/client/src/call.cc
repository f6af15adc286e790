#include "call.h"

#include <grpc/support/time.h>

#include <chrono>
#include <utility>

namespace kubebeast::client {
namespace {

constexpr char kMethod[] = "/kubebeast.v1.ActorPool/Act";

}  // namespace

Call::Call(std::shared_ptr<grpc::Channel> channel, const std::optional<std::string>& authorization,
           grpc::CompletionQueue* queue)
    : channel_(std::move(channel)), stub_(channel_) {
  if (authorization.has_value()) context_.AddMetadata("authorization", *authorization);
  stream_ = stub_.PrepareCall(&context_, kMethod, queue);
  stream_->StartCall(Begin(Event::kStarted));
}

void Call::Read() { stream_->Read(&message_, Begin(Event::kRead)); }

void Call::Write(const grpc::Slice& message) { stream_->Write(grpc::ByteBuffer(&message, 1), Begin(Event::kWritten)); }

void Call::WriteLast(const grpc::Slice& message) {
  stream_->WriteLast(grpc::ByteBuffer(&message, 1), {}, Begin(Event::kWritten));
}

void Call::Finish() { stream_->Finish(&status_, Begin(Event::kFinished)); }

// The tag of an event is its number: one of each kind is under way at a time.
void* Call::Begin(Event event) {
  ++num_under_way_;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(event));  // NOLINT(performance-no-int-to-ptr)
}

Call::Event Call::Take(void* tag) {
  --num_under_way_;
  return static_cast<Event>(reinterpret_cast<std::uintptr_t>(tag));
}

gpr_timespec ToGrpc(Clock::time_point deadline) {
  const Clock::time_point now = Clock::now();
  if (deadline <= now) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  if (deadline == Clock::time_point::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

}  // namespace kubebeast::client
