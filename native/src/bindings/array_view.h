// Conversions between native arrays and numpy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensors/array.h"

namespace kubebeast {

// Returns a writable numpy view, which keeps the memory alive.
inline pybind11::array AsNumpy(const Array& array) {
  using Owner = std::shared_ptr<std::uint8_t[]>;
  const pybind11::capsule owner(new Owner(array.data), [](void* held) { delete static_cast<Owner*>(held); });
  return {pybind11::dtype(DTypeName(array.dtype)), array.shape, array.data.get(), owner};
}

inline pybind11::list AsNumpy(const std::vector<Array>& arrays) {
  pybind11::list views;
  for (const Array& array : arrays) views.append(AsNumpy(array));
  return views;
}

// Returns the data of a C-contiguous array of exactly this dtype and shape, valid as long as `array`; otherwise throws
// a ValueError with the argument's name.
inline const std::uint8_t* CheckedData(const std::string& name, const pybind11::array& array, DType dtype,
                                       const std::vector<std::int64_t>& shape) {
  const std::vector<std::int64_t> actual(array.shape(), array.shape() + array.ndim());
  if (!array.dtype().is(pybind11::dtype(DTypeName(dtype))) || actual != shape) {
    throw pybind11::value_error(absl::StrCat(name, " is ", std::string(pybind11::str(array.dtype())), " [",
                                             absl::StrJoin(actual, ", "), "], expected ", DTypeName(dtype), " [",
                                             absl::StrJoin(shape, ", "), "]"));
  }
  if ((array.flags() & pybind11::array::c_style) == 0) throw pybind11::value_error(name + " is not C-contiguous");
  return static_cast<const std::uint8_t*>(array.data());
}

}  // namespace kubebeast
