#include "contract_rows.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "script.h"

namespace kubebeast::fuzz {
namespace {

// episode | row | is_first | terminated | truncated | interrupted | waiting | reward | frames | then | minor
ContractRow ParseRow(absl::string_view line) {
  std::vector<std::string> cells = absl::StrSplit(line, '|');
  Require(cells.size() == 11, "a row of the contract has eleven cells");
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  const auto is_set = [&cells](std::size_t i) { return cells[i] == "1"; };
  ContractRow row{.due = cells[0] == "due",
                  .flags = {.is_first = is_set(2),
                            .terminated = is_set(3),
                            .truncated = is_set(4),
                            .interrupted = is_set(5),
                            .waiting = is_set(6)},
                  .rewarded = cells[7] == "finite",
                  .due_after = cells[9] == "due"};
  Require(absl::SimpleAtoi(cells[10], &row.minor), "a row of the contract names its minor version");
  return row;
}

std::vector<ContractRow> ReadRows() {
  std::ifstream proto(KUBEBEAST_PROTO_FILE);
  std::vector<ContractRow> rows;
  for (std::string line; std::getline(proto, line);) {
    absl::string_view text = line;
    if (!absl::ConsumePrefix(&text, "//   ")) continue;
    if (absl::StartsWith(text, "due ") || absl::StartsWith(text, "under way ")) rows.push_back(ParseRow(text));
  }
  Require(!rows.empty(), "the contract has a table of rows");
  return rows;
}

const std::vector<ContractRow>& AllRows() {
  static const std::vector<ContractRow> rows = ReadRows();
  return rows;
}

}  // namespace

RowFlags FlagsOf(const v1::Observations& step, std::size_t env) {
  return {.is_first = step.is_first()[env] != 0,
          .terminated = step.terminated()[env] != 0,
          .truncated = step.truncated()[env] != 0,
          .interrupted = !step.interrupted().empty() && step.interrupted()[env] != 0,
          .waiting = !step.waiting().empty() && step.waiting()[env] != 0};
}

std::vector<ContractRow> RowsWhen(bool due, const Hello& peer) {
  std::vector<ContractRow> rows;
  std::copy_if(AllRows().begin(), AllRows().end(), std::back_inserter(rows), [due, &peer](const ContractRow& row) {
    return row.due == due && row.minor <= peer.protocol_minor && (peer.takes_turns || !row.flags.waiting);
  });
  return rows;
}

ContractRow RowOf(bool due, const Hello& peer, const RowFlags& flags) {
  const std::vector<ContractRow> rows = RowsWhen(due, peer);
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&flags](const ContractRow& option) { return option.flags == flags; });
  Require(row != rows.end(), "every accepted row is one of the contract's");
  return *row;
}

}  // namespace kubebeast::fuzz
