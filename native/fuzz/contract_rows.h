// Rows that the contract's table in the .proto allows an environment at a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "wire/handshake_codec.h"

namespace kubebeast::fuzz {

// Flags of one environment's row.
struct RowFlags {
  bool is_first = false;
  bool terminated = false;
  bool truncated = false;
  bool interrupted = false;
  bool waiting = false;

  bool operator==(const RowFlags&) const = default;
};

RowFlags FlagsOf(const v1::Observations& step, std::size_t env);

// One line of the table.
struct ContractRow {
  bool due = false;  // true if the row must open an episode
  RowFlags flags;
  bool rewarded = false;   // true if its reward may be other than 0
  bool due_after = false;  // true if the next row must open an episode
  std::uint32_t minor = 0;
};

// Returns the rows that an environment of that peer may send with its episode due or under way, in the table's order.
std::vector<ContractRow> RowsWhen(bool due, const Hello& peer);

// Returns the row with these flags; aborts the process if there is none.
ContractRow RowOf(bool due, const Hello& peer, const RowFlags& flags);

}  // namespace kubebeast::fuzz
