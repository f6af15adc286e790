// Invariants of a pool between any two events.
#pragma once

#include <cstddef>

#include "stream/pool_context.h"

namespace kubebeast::fuzz {

// Requires that counts of steps balance, gauges equal the live streams and environments, and queues are bounded.
void CheckPool(const PoolContext& pool, std::size_t num_streams, std::size_t num_envs);

// Requires that nothing is left of a closed pool without streams and that its events are lines for a log; records the
// counters that its run has reached.
void CheckEmptyPool(PoolContext& pool);

// Requires at the end of a run over the corpus that it has reached all important states, with or without random inputs.
void CheckReached();

}  // namespace kubebeast::fuzz
