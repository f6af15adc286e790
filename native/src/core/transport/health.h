// What the learner says of its health (https://github.com/grpc/grpc/blob/master/doc/health-checking.md).
#pragma once

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "calls/message.h"

namespace kubebeast {

// Of the server as a whole (the empty name) and of the contract's service. Thread-safe.
class Health {
 public:
  static constexpr char kCheckMethod[] = "/grpc.health.v1.Health/Check";

  void SetServing(bool serving) { serving_ = serving; }

  // The serialized HealthCheckResponse for a HealthCheckRequest. NotFound where the service is another one;
  // InvalidArgument for anything else.
  absl::StatusOr<std::string> Check(const Message& request) const;

 private:
  std::atomic<bool> serving_ = true;
};

}  // namespace kubebeast
