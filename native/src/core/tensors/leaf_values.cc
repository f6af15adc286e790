#include "tensors/leaf_values.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tensors/finite.h"

namespace kubebeast {
namespace {

// Checks that the elements of an integer leaf are at least 0 and below `bound`.
template <typename Element>
absl::Status CheckBelow(const std::uint8_t* data, std::size_t size, std::int64_t bound) {
  for (std::size_t offset = 0; offset < size; offset += sizeof(Element)) {
    Element value;
    std::memcpy(&value, data + offset, sizeof(Element));
    if (value < 0 || static_cast<std::int64_t>(value) >= bound) {
      return absl::InvalidArgumentError(absl::StrCat("element ", offset / sizeof(Element), " is ",
                                                     static_cast<std::int64_t>(value), ", expected 0 to ", bound - 1));
    }
  }
  return absl::OkStatus();
}

template <typename Float>
absl::Status CheckFinite(const std::uint8_t* data, std::size_t size) {
  const std::size_t count = size / sizeof(Float);
  const std::size_t i = FindNonFinite<Float>(data, count);
  if (i == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("element ", i, " is ", LoadFloat<Float>(data, i), ", which is not finite as a float32"));
}

}  // namespace

absl::Status CheckCategories(const LeafSpec& spec, const std::uint8_t* data, std::size_t size) {
  const std::int64_t bound = spec.num_categories;
  if (spec.dtype == DType::kBool) return CheckBelow<std::uint8_t>(data, size, bound == 1 ? 1 : 2);
  if (bound == 0) return absl::OkStatus();
  switch (spec.dtype) {
    case DType::kUint8:
      return CheckBelow<std::uint8_t>(data, size, bound);
    case DType::kInt8:
      return CheckBelow<std::int8_t>(data, size, bound);
    case DType::kInt16:
      return CheckBelow<std::int16_t>(data, size, bound);
    case DType::kInt32:
      return CheckBelow<std::int32_t>(data, size, bound);
    case DType::kInt64:
      return CheckBelow<std::int64_t>(data, size, bound);
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckValues(const LeafSpec& spec, const std::uint8_t* data, std::size_t size) {
  if (spec.dtype == DType::kFloat32) return CheckFinite<float>(data, size);
  if (spec.dtype == DType::kFloat64) return CheckFinite<double>(data, size);
  return CheckCategories(spec, data, size);
}

}  // namespace kubebeast
