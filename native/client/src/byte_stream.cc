#include "byte_stream.h"

#include <utility>

namespace kubebeast::client {

ByteStream::ByteStream(std::shared_ptr<grpc::Channel> channel, const std::optional<std::string>& authorization)
    : call_(std::move(channel), authorization, &queue_) {}

ByteStream::~ByteStream() {
  Cancel();
  while (Receive(Clock::time_point::max()) != Received::kEnd) {
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void ByteStream::Send(grpc::Slice message, bool is_last) {
  const MutexLock lock(mutex_);
  if (has_last_) return;
  has_last_ = is_last;
  unsent_.push_back(std::move(message));
  TryWrite();
}

ByteStream::Received ByteStream::Receive(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  // Read only now, so that gRPC's frames for it go out together with the sent message.
  if (started_) Read();
  while (!over()) {
    mutex_.Unlock();
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_.AsyncNext(&tag, &ok, ToGrpc(deadline));
    mutex_.Lock();
    if (next != grpc::CompletionQueue::GOT_EVENT) return Received::kNothing;
    if (OnEvent(tag, ok)) return Received::kMessage;
  }
  return Received::kEnd;
}

void ByteStream::Cancel() {
  const MutexLock lock(mutex_);
  call_.Cancel();
}

bool ByteStream::OnEvent(void* tag, bool ok) {
  switch (call_.Take(tag)) {
    case Call::Event::kStarted:
      started_ = ok;
      if (ok) {
        TryWrite();
        Read();
      } else {
        Finish();
      }
      return false;
    case Call::Event::kWritten:
      writing_ = false;
      if (ok) TryWrite();  // else the read returns the reason
      return false;
    case Call::Event::kRead:
      reading_ = false;
      if (!ok) Finish();
      return ok;
    case Call::Event::kFinished:
      return false;
  }
  return false;
}

void ByteStream::Read() {
  if (finishing_ || std::exchange(reading_, true)) return;
  call_.Read();
}

void ByteStream::TryWrite() {
  if (!started_ || writing_ || finishing_ || unsent_.empty()) return;
  writing_ = true;
  const grpc::Slice message = std::move(unsent_.front());
  unsent_.pop_front();
  if (has_last_ && unsent_.empty()) {
    call_.WriteLast(message);
  } else {
    call_.Write(message);
  }
}

void ByteStream::Finish() {
  finishing_ = true;
  call_.Finish();
}

}  // namespace kubebeast::client
