// Incoming calls that are no streams.
#pragma once

#include <grpc/grpc.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calls/message.h"
#include "calls/poller.h"

namespace kubebeast {

// Answers a call at once or after its only request, and deletes itself when gRPC is done with it. Never blocks.
class ShortCall final : private Poller::Event {
 public:
  // The serialized response, or why there is none; a request that never came has no value.
  using Answer = std::function<absl::StatusOr<std::string>(const Message& request)>;

  // Take the call over.
  static void StartUnary(grpc_call* call, Answer answer);
  static void Refuse(grpc_call* call, const absl::Status& status);

 private:
  ShortCall(grpc_call* call, Answer answer) : call_(call), answer_(std::move(answer)) {}
  ~ShortCall() override { grpc_call_unref(call_); }

  void Run(bool ok) override;
  void Reply(const absl::StatusOr<std::string>& response);

  grpc_call* const call_;
  const Answer answer_;
  bool replied_ = false;
  int cancelled_ = 0;
  grpc_byte_buffer* request_ = nullptr;
  Message response_;
};

}  // namespace kubebeast
