#include "tensors/tensor_spec.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace kubebeast {
namespace {

constexpr std::size_t kMaxLeaves = 256;
constexpr std::size_t kMaxDims = 32;
// Paths are part of log lines and error messages.
constexpr std::size_t kMaxPathBytes = 255;

struct DTypeEntry {
  const char* name;
  std::size_t item_size;
  std::int64_t largest_category;  // -1 if the type cannot hold categories
};

template <typename Integer>
constexpr DTypeEntry IntegerEntry(const char* name) {
  return {name, sizeof(Integer), std::numeric_limits<Integer>::max()};
}

// In the order of DType; the first entry is for invalid values.
constexpr DTypeEntry kDTypes[] = {{"invalid", 0, -1},
                                  IntegerEntry<std::uint8_t>("uint8"),
                                  IntegerEntry<std::int8_t>("int8"),
                                  IntegerEntry<std::int16_t>("int16"),
                                  IntegerEntry<std::int32_t>("int32"),
                                  IntegerEntry<std::int64_t>("int64"),
                                  {"float32", sizeof(float), -1},
                                  {"float64", sizeof(double), -1},
                                  {"bool", 1, 1}};

const DTypeEntry& EntryOf(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return kDTypes[index < std::size(kDTypes) ? index : 0];
}

absl::Status CheckRowBytes(const LeafSpec& leaf, std::size_t max_row_bytes) {
  if (leaf.frame_stack == 0 || leaf.frame_stack > kMaxFrameStack) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame_stack is ", leaf.frame_stack, ", expected 1 to ", kMaxFrameStack));
  }
  std::size_t bytes = ItemSize(leaf.dtype) * leaf.frame_stack;
  bool fits = bytes <= max_row_bytes;
  for (const std::int64_t dim : leaf.shape) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("shape has the negative dimension ", dim));
    // A dimension of 0 empties the row but does not shrink the other dimensions: they are checked without it.
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(dim, 1));
    fits = fits && bytes <= max_row_bytes / size;
    if (fits) bytes *= size;
  }
  if (!fits) return absl::InvalidArgumentError(absl::StrCat("a row is larger than ", max_row_bytes, " bytes"));
  return absl::OkStatus();
}

// Checks the parts of the leaf that make its text long.
absl::Status CheckLengths(const LeafSpec& leaf) {
  if (leaf.path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("path has ", leaf.path.size(), " bytes, at most ", kMaxPathBytes));
  }
  if (leaf.shape.size() > kMaxDims) {
    return absl::InvalidArgumentError(absl::StrCat("shape has ", leaf.shape.size(), " dimensions, at most ", kMaxDims));
  }
  return absl::OkStatus();
}

absl::Status CheckLeaf(const LeafSpec& leaf, std::size_t max_row_bytes) {
  if (ItemSize(leaf.dtype) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("unknown dtype ", static_cast<int>(leaf.dtype)));
  }
  if (leaf.num_categories < 0) {
    return absl::InvalidArgumentError(absl::StrCat("num_categories is ", leaf.num_categories));
  }
  if (leaf.num_categories > 0 && leaf.num_categories - 1 > EntryOf(leaf.dtype).largest_category) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_categories ", leaf.num_categories, " does not fit ", DTypeName(leaf.dtype)));
  }
  return CheckRowBytes(leaf, max_row_bytes);
}

bool IsFloat(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

absl::Status Invalid(absl::string_view role, const LeafSpec& leaf, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(role, " leaf (", leaf.ToString(), "): ", reason));
}

// Checks the leaves that have a role, which only some leaves may have.
absl::Status CheckRoles(const EnvSpec& spec) {
  bool has_mask = false;
  for (const LeafSpec& leaf : spec.observation) {
    if (leaf.bounded) return Invalid("observation", leaf, "only actions are bounded");
    if (!leaf.is_action_mask) continue;
    if (has_mask) return Invalid("observation", leaf, "a second action mask");
    has_mask = true;
    if (leaf.dtype != DType::kBool || leaf.frame_stack != 1) {
      return Invalid("observation", leaf, "an action mask is bool, without a stack");
    }
  }
  for (const LeafSpec& leaf : spec.action) {
    if (leaf.frame_stack != 1) return Invalid("action", leaf, "actions are not stacked");
    if (leaf.is_action_mask) return Invalid("action", leaf, "only observations hold an action mask");
    if (leaf.bounded && !IsFloat(leaf.dtype)) return Invalid("action", leaf, "only floats are bounded");
  }
  return absl::OkStatus();
}

absl::Status CheckLeaves(absl::string_view role, const std::vector<LeafSpec>& leaves, std::size_t max_row_bytes) {
  if (leaves.empty() || leaves.size() > kMaxLeaves) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " has ", leaves.size(), " leaves, expected 1 to ", kMaxLeaves));
  }
  std::unordered_set<std::string_view> paths;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (absl::Status status = CheckLengths(leaves[i]); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(role, " leaf ", i, ": ", status.message()));
    }
    absl::Status status = CheckLeaf(leaves[i], max_row_bytes);
    if (status.ok() && !paths.insert(leaves[i].path).second) {
      status = absl::InvalidArgumentError("path is repeated");
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(role, " leaf ", i, " (", leaves[i].ToString(), "): ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CompareLeaves(absl::string_view role, const std::vector<LeafSpec>& expected,
                           const std::vector<LeafSpec>& actual) {
  for (std::size_t i = 0; i < expected.size() || i < actual.size(); ++i) {
    if (i < expected.size() && i < actual.size() && expected[i] == actual[i]) continue;
    const std::string wanted = i < expected.size() ? expected[i].ToString() : "no such leaf";
    const std::string got = i < actual.size() ? actual[i].ToString() : "no such leaf";
    return absl::FailedPreconditionError(
        absl::StrCat(role, " leaf ", i, " differs: the learner expects ", wanted, ", the env-server has ", got));
  }
  return absl::OkStatus();
}

}  // namespace

std::size_t ItemSize(DType dtype) { return EntryOf(dtype).item_size; }

const char* DTypeName(DType dtype) { return EntryOf(dtype).name; }

std::size_t LeafSpec::frame_bytes() const {
  std::size_t bytes = ItemSize(dtype);
  for (const std::int64_t dim : shape) bytes *= static_cast<std::size_t>(dim);
  return bytes;
}

std::vector<std::int64_t> LeafSpec::row_shape() const {
  std::vector<std::int64_t> result = shape;
  if (frame_stack > 1) result.insert(result.begin(), frame_stack);
  return result;
}

std::string LeafSpec::ToString() const {
  std::string text =
      absl::StrCat("\"", absl::CHexEscape(path), "\" ", DTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]");
  if (frame_stack > 1) absl::StrAppend(&text, " stack ", frame_stack);
  if (num_categories > 0) absl::StrAppend(&text, " categories ", num_categories);
  if (bounded) absl::StrAppend(&text, " bounded");
  if (is_action_mask) absl::StrAppend(&text, " action mask");
  return text;
}

absl::Status ValidateEnvSpec(const EnvSpec& spec, std::size_t max_row_bytes) {
  absl::Status status = CheckLeaves("observation", spec.observation, max_row_bytes);
  if (status.ok()) status = CheckLeaves("action", spec.action, max_row_bytes);
  return status.ok() ? CheckRoles(spec) : status;
}

absl::Status CheckCompatible(const EnvSpec& expected, const EnvSpec& actual) {
  absl::Status status = CompareLeaves("observation", expected.observation, actual.observation);
  if (status.ok()) status = CompareLeaves("action", expected.action, actual.action);
  return status;
}

}  // namespace kubebeast
