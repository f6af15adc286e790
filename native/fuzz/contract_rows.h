// The contract's table of rows, as the .proto has it: what an environment may send at a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kubebeast_protos/v1/actor_pool.pb.h"

namespace kubebeast::fuzz {

// The flags of one environment's row.
struct RowFlags {
  bool is_first = false;
  bool terminated = false;
  bool truncated = false;
  bool interrupted = false;

  bool operator==(const RowFlags&) const = default;
};

RowFlags FlagsOf(const v1::Observations& step, std::size_t env);

// One line of the table.
struct ContractRow {
  bool due = false;  // whether an episode must be opened by it
  RowFlags flags;
  bool rewarded = false;   // its reward may be other than 0
  bool due_after = false;  // whether the next row must open an episode
  std::uint32_t minor = 0;
};

// The rows that an environment may send, whose episode is due or under way, in the table's order.
std::vector<ContractRow> RowsWhen(bool due, std::uint32_t minor);

// The one of them with these flags; ends the process where there is none.
ContractRow RowOf(bool due, std::uint32_t minor, const RowFlags& flags);

}  // namespace kubebeast::fuzz
