// Incoming calls that are not streams.
#pragma once

#include <grpc/grpc.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calls/message.h"
#include "calls/open_calls.h"
#include "calls/poller.h"

namespace kubebeast {

// A call that is answered at once, or after its only request. Deletes itself when gRPC is done with it. Never blocks.
class ShortCall final : private Poller::Event {
 public:
  // Returns the serialized response or an error; a request that never came has no value.
  using Answer = std::function<absl::StatusOr<std::string>(const Message& request)>;

  // Both take over the call; `open` counts it until its end.
  static void StartUnary(grpc_call* call, OpenCalls& open, Answer answer);
  static void Refuse(grpc_call* call, OpenCalls& open, const absl::Status& status);

 private:
  ShortCall(grpc_call* call, OpenCalls& open, Answer answer) : call_(call), open_(open), answer_(std::move(answer)) {
    open_.Add();
  }
  ~ShortCall() override {
    grpc_call_unref(call_);
    open_.Remove();
  }

  void Run(bool ok) override;
  void Reply(const absl::StatusOr<std::string>& response);

  grpc_call* const call_;
  OpenCalls& open_;
  const Answer answer_;
  bool replied_ = false;
  int cancelled_ = 0;
  grpc_byte_buffer* request_ = nullptr;
  Message response_;
};

}  // namespace kubebeast
