// A fuzz input as a sequence of choices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kubebeast::fuzz {

// Aborts the process, which libFuzzer reports together with the input, unless the property holds.
inline void Require(bool property, const char* text) {
  if (property) return;
  std::fprintf(stderr, "violated: %s\n", text);
  std::abort();
}

// Reader of an input from front to back, so that inserted or removed bytes only shift the rest. After the end every
// choice is 0.
class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}

  bool done() const { return next_ == end_; }
  void Stop() { next_ = end_; }

  std::uint8_t Byte() { return done() ? std::uint8_t{0} : *next_++; }
  // Returns 0 .. bound - 1, from one byte up to a bound of 256 and from two above.
  std::size_t Below(std::size_t bound) {
    std::size_t value = Byte();
    if (bound > 256) value |= std::size_t{Byte()} << 8U;
    return value % bound;
  }
  // Reads eight bytes, little-endian.
  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) value |= std::uint64_t{Byte()} << shift;
    return value;
  }
  // Reads up to 65535 bytes after their two-byte length.
  std::string Bytes() {
    const std::size_t size = std::min(Below(65536), static_cast<std::size_t>(end_ - next_));
    std::string bytes(reinterpret_cast<const char*>(next_), size);
    next_ += size;
    return bytes;
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* const end_;
};

}  // namespace kubebeast::fuzz
