// Arrays that leave the core.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensors/tensor_spec.h"

namespace kubebeast {

// C-contiguous array with shared memory, which lives as long as any copy of the Array.
struct Array {
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;
  std::shared_ptr<std::uint8_t[]> data;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data.get());
  }
};

}  // namespace kubebeast
