// Decoder of one kubebeast.v1.Observations message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/io/coded_stream.h"
#include "tensors/tensor_spec.h"
#include "wire/observation_rows.h"
#include "wire/protocol.h"

namespace kubebeast {

// Values that the history of a stream requires of its next Observations message.
struct ObservationExpectation {
  std::uint64_t step = 0;
  std::vector<std::uint8_t> is_first;  // [B]: set for rows after a final row, and for every row of step 0
  std::size_t num_info = 0;            // values in the info of an episode, unless it is empty
  std::uint32_t num_agents = 1;        // rows of one environment
  bool takes_turns = false;            // rows may be waiting
};

// Decodes a length-delimited Observations message, length prefix included. The size of a stacked leaf depends on
// is_first, which follows the leaves on the wire: it is predicted by `expected` and checked when it arrives.
// Returns InvalidArgument for any violation of the contract; the text contains field, value and expectation.
absl::StatusOr<std::shared_ptr<ObservationRows>> DecodeObservations(google::protobuf::io::CodedInputStream* in,
                                                                    const std::vector<LeafSpec>& specs,
                                                                    const std::vector<Compression>& compression,
                                                                    const ObservationExpectation& expected,
                                                                    std::string* scratch);

}  // namespace kubebeast
