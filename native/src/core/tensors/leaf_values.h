// The values of a leaf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {

// InvalidArgument where a category or a bool of `size` bytes of the leaf is out of range: a category indexes tables of
// the model, and a bool is read as one by numpy and torch.
absl::Status CheckCategories(const LeafSpec& spec, const std::uint8_t* data, std::size_t size);

// The same, and where a float is not finite when it is rounded to float32.
absl::Status CheckValues(const LeafSpec& spec, const std::uint8_t* data, std::size_t size);

}  // namespace kubebeast
