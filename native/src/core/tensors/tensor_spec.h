// Shapes and element types of the leaves in a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kubebeast {

// Element types, with the values of kubebeast.v1.DType on the wire.
enum class DType : std::uint8_t {
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kBool = 8,
};

inline constexpr std::uint32_t kMaxFrameStack = 256;

// Returns the bytes of one element.
std::size_t ItemSize(DType dtype);

// Returns the numpy name, e.g. "float32".
const char* DTypeName(DType dtype);

// One leaf of a flattened observation or action structure (kubebeast.v1.LeafSpec).
struct LeafSpec {
  std::string path;
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;  // shape of one frame of one environment
  std::uint32_t frame_stack = 1;    // k >= 1 frames make a row; only the newest is sent unless is_first
  std::int64_t num_categories = 0;  // n > 0: categories 0 .. n-1
  bool bounded = false;             // action leaf of floats: true if they lie in [-1, 1]
  bool is_action_mask = false;      // observation leaf: true if it marks the allowed categories of the action leaves

  // Returns the bytes of one frame.
  std::size_t frame_bytes() const;
  // Returns the bytes of one row as the model sees it: frame_stack frames.
  std::size_t row_bytes() const { return frame_stack * frame_bytes(); }
  // Returns the shape of one row as the model sees it: shape, or [frame_stack, *shape] if frame_stack > 1.
  std::vector<std::int64_t> row_shape() const;
  // Returns e.g. `"image" uint8 [84, 84] stack 4`, for error messages.
  std::string ToString() const;

  bool operator==(const LeafSpec&) const = default;
};

// Specification of the environments of a stream. Only the leaves decide if streams are compatible: env_id and
// env_config, the JSON object of Hello.env_config or empty, are for logs and for evaluation.
struct EnvSpec {
  std::string env_id;
  std::string env_config;
  std::vector<LeafSpec> observation;
  std::vector<LeafSpec> action;
};

// Returns InvalidArgument if a leaf is malformed (no dtype, negative or overflowing shape, row over max_row_bytes, too
// many leaves, repeated path); the message contains the leaf and the value.
absl::Status ValidateEnvSpec(const EnvSpec& spec, std::size_t max_row_bytes);

// Returns FailedPrecondition if `actual` cannot feed a learner built for `expected`; the message shows both versions of
// the first leaf that differs.
absl::Status CheckCompatible(const EnvSpec& expected, const EnvSpec& actual);

}  // namespace kubebeast
