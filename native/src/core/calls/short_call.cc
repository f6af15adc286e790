#include "calls/short_call.h"

#include <utility>

#include "calls/batch.h"

namespace kubebeast {

void ShortCall::StartUnary(grpc_call* call, OpenCalls& open, Answer answer) {
  auto* const started = new ShortCall(call, open, std::move(answer));
  Batch batch;
  batch.Receive(&started->request_).Begin(call, *started);
}

void ShortCall::Refuse(grpc_call* call, OpenCalls& open, const absl::Status& status) {
  (new ShortCall(call, open, nullptr))->Reply(status);
}

void ShortCall::Run(bool /*ok*/) {
  if (replied_) {
    delete this;
    return;
  }
  Reply(answer_(Message(std::exchange(request_, nullptr))));
}

void ShortCall::Reply(const absl::StatusOr<std::string>& response) {
  replied_ = true;
  Batch batch;
  batch.SendInitialMetadata();
  if (response.ok()) {
    response_ = Message(*response);
    batch.Send(response_);
  }
  batch.SendStatus(response.status()).ReceiveClose(&cancelled_).Begin(call_, *this);
}

}  // namespace kubebeast
