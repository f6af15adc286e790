// Costs of the connections of blocked hosts.
#pragma once

#include <cstdint>

#include "access/token_bucket.h"
#include "sync/clock.h"

namespace kubebeast {

// The time of gRPC's thread that connections in the slow lane take, in seconds, which is limited to a share of it. Not
// thread-safe.
class SlowLane {
 public:
  explicit SlowLane(bool tls) : setup_cost_(tls ? kTlsCost : kPlainCost) {}

  // Returns true if another connection may be served now, and charges its setup.
  [[nodiscard]] bool Admit(Clock::time_point now) { return time_.Take(now, setup_cost_); }
  void ChargeBytes(std::uint64_t bytes, Clock::time_point now) {
    time_.Charge(now, kByteCost * static_cast<double>(bytes));
  }
  void ChargeRefusal(Clock::time_point now) { time_.Charge(now, kRefusalCost); }

 private:
  static constexpr double kShare = 0.12;
  static constexpr double kBurst = 0.12;
  // All connections may be floods, so that the lane owes more than it could have saved up.
  static constexpr double kDebt = 1.0;
  static constexpr double kPlainCost = 0.0005;
  static constexpr double kTlsCost = 0.002;
  static constexpr double kByteCost = 0.25e-6;  // in the most expensive flood
  static constexpr double kRefusalCost = 0.002;

  const double setup_cost_;
  TokenBucket time_{kBurst, kShare, kDebt};
};

}  // namespace kubebeast
