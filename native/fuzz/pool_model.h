// What must hold of a pool between any two events.
#pragma once

#include <cstddef>

#include "stream/pool_context.h"

namespace kubebeast::fuzz {

// Requires that the books balance, that gauges equal what is live and that what waits is bounded.
void CheckPool(const PoolContext& pool, std::size_t num_streams, std::size_t num_envs);

// Requires that nothing is left of a closed pool without streams and that its events are lines for a log; takes note of
// what its run has reached.
void CheckEmptyPool(PoolContext& pool);

// Requires at the end of a run over the corpus that it has reached the states that matter, whatever chance added.
void CheckReached();

}  // namespace kubebeast::fuzz
