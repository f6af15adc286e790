// Request for the next incoming call, with the call's method and metadata.
#pragma once

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "calls/open_calls.h"
#include "calls/poller.h"

namespace kubebeast {

// A request that gRPC fills in. Its handler runs in the thread of the completion queue. Each call gets a new object, so
// a handler may keep its own.
class IncomingCall : public Poller::Event {
 public:
  // open: counts this object as long as it lives.
  explicit IncomingCall(OpenCalls& open) : open_(open) {
    open_.Add();
    grpc_call_details_init(&details);
    grpc_metadata_array_init(&metadata);
  }
  ~IncomingCall() override {
    grpc_metadata_array_destroy(&metadata);
    grpc_call_details_destroy(&details);
    open_.Remove();
  }
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  // Returns the name of the method; empty for a registered method.
  absl::string_view method() const { return ViewOf(details.method); }

  // Returns the peer in gRPC's notation; empty once the connection has lost its address.
  std::string peer() const {
    const std::unique_ptr<char, decltype(&gpr_free)> peer(grpc_call_get_peer(call), &gpr_free);
    return peer == nullptr ? "" : peer.get();
  }

  std::optional<std::string> Find(absl::string_view key) const {
    for (std::size_t i = 0; i < metadata.count; ++i) {
      if (ViewOf(metadata.metadata[i].key) == key) return std::string(ViewOf(metadata.metadata[i].value));
    }
    return std::nullopt;
  }

  // Filled in by gRPC. The handler must unref the call.
  grpc_call* call = nullptr;
  grpc_call_details details{};
  grpc_metadata_array metadata{};
  gpr_timespec deadline{};

 private:
  OpenCalls& open_;

  static absl::string_view ViewOf(const grpc_slice& slice) {
    return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
  }
};

}  // namespace kubebeast
