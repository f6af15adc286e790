// Check that the numbers of a leaf are valid inputs of a model: finite when rounded to float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kubebeast {

// The largest number of the type that is finite as float32.
template <typename Float>
inline constexpr Float kLargestFinite = std::numeric_limits<Float>::max();
template <>
inline constexpr double kLargestFinite<double> = 0x1.fffffefffffffp127;  // the next one is rounded to 2^128

template <typename Float>
Float LoadFloat(const std::uint8_t* data, std::size_t index) {
  Float value;
  std::memcpy(&value, data + index * sizeof(Float), sizeof(Float));
  return value;
}

// Returns the index of the first of `count` numbers that is not finite as float32, or `count` if all are.
template <typename Float>
std::size_t FindNonFinite(const std::uint8_t* data, std::size_t count) {
  using Bits = std::conditional_t<sizeof(Float) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits kLargest = std::bit_cast<Bits>(kLargestFinite<Float>);
  // Without its sign, a number has the order of its bits, with infinity and NaN above all others. The headroom is
  // negative for numbers that are too large; the loop has no early exit, so that it is vectorized.
  const auto headroom = [data](std::size_t i) {
    return kLargest - (std::bit_cast<Bits>(LoadFloat<Float>(data, i)) & ~kSign);
  };
  Bits any = 0;
  for (std::size_t i = 0; i < count; ++i) any |= headroom(i);
  if ((any & kSign) == 0) return count;
  std::size_t i = 0;
  while ((headroom(i) & kSign) == 0) ++i;
  return i;
}

}  // namespace kubebeast
