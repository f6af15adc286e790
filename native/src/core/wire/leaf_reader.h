// Reader of one observation leaf: from the transport's slices to its final block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/io/coded_stream.h"
#include "tensors/tensor_spec.h"
#include "wire/protocol.h"

namespace kubebeast {

// Reads a length-delimited leaf of `size` bytes when decompressed, length prefix included. Raw bytes are copied once;
// an LZ4 block is decompressed from the slice that holds it, or through `scratch` if it spans slices. Memory is
// allocated only if the length on the wire can yield `size` bytes.
// Returns InvalidArgument for another size, a bad LZ4 block, a bool that is not 0 or 1, or a category out of range.
absl::StatusOr<std::unique_ptr<std::uint8_t[]>> ReadLeaf(google::protobuf::io::CodedInputStream* in,
                                                         const LeafSpec& spec, Compression compression,
                                                         std::size_t size, std::string* scratch);

}  // namespace kubebeast
