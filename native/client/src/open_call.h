// Opening of a call with the options of a stream.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>

#include "absl/status/statusor.h"
#include "call.h"
#include "settings.h"

namespace kubebeast::client {

// Reads the files of token and TLS, and opens a call. Returns Unavailable if a file cannot be used.
absl::StatusOr<std::unique_ptr<Call>> OpenCall(const Settings& settings, grpc::CompletionQueue* queue);

}  // namespace kubebeast::client
