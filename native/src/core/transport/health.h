// Health service of the learner (https://github.com/grpc/grpc/blob/master/doc/health-checking.md).
#pragma once

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "calls/message.h"

namespace kubebeast {

// Health of the whole server (the empty name) and of the contract's service. Thread-safe.
class Health {
 public:
  static constexpr char kCheckMethod[] = "/grpc.health.v1.Health/Check";

  void SetServing(bool serving) { serving_ = serving; }

  // Returns the serialized HealthCheckResponse for a HealthCheckRequest; NotFound for the name of another service,
  // InvalidArgument for anything else.
  absl::StatusOr<std::string> Check(const Message& request) const;

 private:
  std::atomic<bool> serving_ = true;
};

}  // namespace kubebeast
