// Checks of the values in a leaf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// Returns InvalidArgument if a category or a bool in the leaf's `size` bytes is out of range: a category indexes tables
// of the model, and numpy and torch read the byte of a bool as it is.
absl::Status CheckCategories(const LeafSpec& spec, const std::uint8_t* data, std::size_t size);

// Checks the same; also returns InvalidArgument if a float is not finite when rounded to float32.
absl::Status CheckValues(const LeafSpec& spec, const std::uint8_t* data, std::size_t size);

}  // namespace kubebeast
