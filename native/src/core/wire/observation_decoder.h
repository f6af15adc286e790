// One kubebeast.v1.Observations message to rows.
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

// What the history of a stream demands of its next Observations message.
struct ObservationExpectation {
  std::uint64_t step = 0;
  std::vector<std::uint8_t> is_first;  // [B]: exactly the rows after a final row, and every row of step 0
};

// Decodes a length-delimited Observations message, length prefix included. The size of a stacked leaf depends on
// is_first, which comes after the leaves on the wire: it is foretold by `expected` and checked when it arrives.
// InvalidArgument on anything the contract forbids; the text names the field, the value and what was expected.
absl::StatusOr<std::shared_ptr<ObservationRows>> DecodeObservations(google::protobuf::io::CodedInputStream* in,
                                                                    const std::vector<LeafSpec>& specs,
                                                                    const std::vector<Compression>& compression,
                                                                    const ObservationExpectation& expected,
                                                                    std::string* scratch);

}  // namespace kubebeast
