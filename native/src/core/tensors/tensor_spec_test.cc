#include "tensors/tensor_spec.h"

#include <gtest/gtest.h>

#include <functional>

namespace kubebeast {
namespace {

constexpr std::size_t kMaxRowBytes = std::size_t{1} << 20;

EnvSpec AtariSpec() {
  EnvSpec spec;
  spec.env_id = "PongNoFrameskip-v4";
  spec.observation = {{.path = "image", .dtype = DType::kUint8, .shape = {84, 84}, .frame_stack = 4}};
  spec.action = {{.path = "", .dtype = DType::kInt64, .shape = {}, .num_categories = 6}};
  return spec;
}

TEST(TensorSpecTest, CountsTheBytesOfFramesAndRows) {
  const LeafSpec image = AtariSpec().observation[0];
  EXPECT_EQ(image.frame_bytes(), 84U * 84U);
  EXPECT_EQ(image.row_bytes(), 4U * 84U * 84U);
  const LeafSpec scalar = AtariSpec().action[0];
  EXPECT_EQ(scalar.frame_bytes(), 8U);
  EXPECT_EQ(scalar.row_bytes(), 8U);
}

TEST(TensorSpecTest, KnowsSizeAndNumpyNameOfEveryDType) {
  const std::vector<std::tuple<DType, std::size_t, std::string>> table = {
      {DType::kUint8, 1, "uint8"},     {DType::kInt8, 1, "int8"},   {DType::kInt16, 2, "int16"},
      {DType::kInt32, 4, "int32"},     {DType::kInt64, 8, "int64"}, {DType::kFloat32, 4, "float32"},
      {DType::kFloat64, 8, "float64"}, {DType::kBool, 1, "bool"},
  };
  for (const auto& [dtype, size, name] : table) {
    EXPECT_EQ(ItemSize(dtype), size) << name;
    EXPECT_EQ(DTypeName(dtype), name);
  }
  EXPECT_EQ(ItemSize(DType{}), 0U);
}

TEST(TensorSpecTest, PutsTheStackBeforeTheShape) {
  LeafSpec leaf = AtariSpec().observation[0];
  EXPECT_EQ(leaf.row_shape(), (std::vector<std::int64_t>{4, 84, 84}));
  leaf.frame_stack = 1;
  EXPECT_EQ(leaf.row_shape(), (std::vector<std::int64_t>{84, 84}));
}

TEST(TensorSpecTest, DescribesALeaf) {
  EXPECT_EQ(AtariSpec().observation[0].ToString(), "\"image\" uint8 [84, 84] stack 4");
  EXPECT_EQ(AtariSpec().action[0].ToString(), "\"\" int64 [] categories 6");
}

TEST(TensorSpecTest, EscapesThePathOfAPeer) { EXPECT_EQ((LeafSpec{.path = "a\nb"}.ToString()), "\"a\\nb\" uint8 []"); }

TEST(TensorSpecTest, AcceptsAWellFormedSpec) {
  EnvSpec spec = AtariSpec();
  spec.observation.push_back({.path = "empty", .dtype = DType::kFloat32, .shape = {0, 3}});
  EXPECT_TRUE(ValidateEnvSpec(spec, kMaxRowBytes).ok()) << ValidateEnvSpec(spec, kMaxRowBytes);
  EXPECT_TRUE(ValidateEnvSpec(AtariSpec(), std::size_t{4} * 84 * 84).ok());
}

struct Rejection {
  std::string name;
  std::function<void(EnvSpec&)> change;
  std::string message;
};

class RejectedSpecTest : public testing::TestWithParam<Rejection> {};

TEST_P(RejectedSpecTest, NamesTheLeafAndTheValue) {
  EnvSpec spec = AtariSpec();
  GetParam().change(spec);
  const absl::Status status = ValidateEnvSpec(spec, kMaxRowBytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status;
  EXPECT_LT(status.message().size(), 4096) << "a peer refuses a status that is longer than its limit for metadata";
}

INSTANTIATE_TEST_SUITE_P(
    All, RejectedSpecTest,
    testing::Values(
        Rejection{"NoLeaves", [](EnvSpec& s) { s.observation.clear(); }, "observation has 0 leaves"},
        Rejection{"NoActions", [](EnvSpec& s) { s.action.clear(); }, "action has 0 leaves"},
        Rejection{"TooManyLeaves", [](EnvSpec& s) { s.observation.resize(257); }, "257 leaves"},
        Rejection{"NoDType", [](EnvSpec& s) { s.observation[0].dtype = DType{}; }, "unknown dtype 0"},
        Rejection{"NegativeDimension", [](EnvSpec& s) { s.observation[0].shape = {84, -1}; }, "dimension -1"},
        Rejection{"NegativeAfterZero", [](EnvSpec& s) { s.observation[0].shape = {0, -5}; }, "dimension -5"},
        Rejection{"RowTooLarge", [](EnvSpec& s) { s.observation[0].shape = {1024, 1024}; }, "larger than 1048576"},
        Rejection{"StackTooLarge", [](EnvSpec& s) { s.observation[0].frame_stack = 257; }, "frame_stack is 257"},
        Rejection{"NoFrames", [](EnvSpec& s) { s.observation[0].frame_stack = 0; }, "frame_stack is 0"},
        Rejection{"OverflowingShape",
                  [](EnvSpec& s) { s.observation[0].shape = {std::int64_t{1} << 32, std::int64_t{1} << 32}; },
                  "\"image\" uint8 [4294967296, 4294967296] stack 4): a row is larger"},
        Rejection{"OverflowingShapeWithoutElements",
                  [](EnvSpec& s) { s.observation[0].shape = {0, std::int64_t{1} << 62}; },
                  "\"image\" uint8 [0, 4611686018427387904] stack 4): a row is larger"},
        Rejection{"TooManyDimensions", [](EnvSpec& s) { s.observation[0].shape.assign(33, 1); }, "33 dimensions"},
        Rejection{"ManyDimensions", [](EnvSpec& s) { s.observation[0].shape.assign(30'000, 1); }, "30000 dimensions"},
        Rejection{"RepeatedPath", [](EnvSpec& s) { s.observation.push_back(s.observation[0]); },
                  "observation leaf 1 (\"image\" uint8 [84, 84] stack 4): path is repeated"},
        Rejection{"LongPath", [](EnvSpec& s) { s.observation[0].path.assign(256, 'x'); }, "path has 256 bytes"},
        Rejection{"EndlessPath", [](EnvSpec& s) { s.observation[0].path.assign(100'000, '\1'); },
                  "observation leaf 0: path has 100000 bytes, at most 255"},
        Rejection{"NegativeCategories", [](EnvSpec& s) { s.action[0].num_categories = -6; }, "num_categories is -6"},
        Rejection{"TooManyCategories", [](EnvSpec& s) { s.observation[0].num_categories = 257; }, "257 does not fit"},
        Rejection{"FloatCategories",
                  [](EnvSpec& s) { s.action[0] = {.path = "a", .dtype = DType::kFloat32, .num_categories = 1}; },
                  "1 does not fit float32"},
        Rejection{"StackedAction", [](EnvSpec& s) { s.action[0].frame_stack = 2; }, "actions are not stacked"},
        Rejection{"BoundedObservation", [](EnvSpec& s) { s.observation[0].bounded = true; },
                  "only actions are bounded"},
        Rejection{"BoundedChoice", [](EnvSpec& s) { s.action[0].bounded = true; }, "only floats are bounded"},
        Rejection{"MaskAsAction", [](EnvSpec& s) { s.action[0].is_action_mask = true; }, "only observations hold"},
        Rejection{"MaskOfBytes", [](EnvSpec& s) { s.observation[0].is_action_mask = true; }, "an action mask is bool"},
        Rejection{"TwoMasks",
                  [](EnvSpec& s) {
                    s.observation = {{.path = "a", .dtype = DType::kBool, .shape = {6}, .is_action_mask = true},
                                     {.path = "b", .dtype = DType::kBool, .shape = {6}, .is_action_mask = true}};
                  },
                  "\"b\" bool [6] action mask): a second action mask"}),
    [](const auto& info) { return info.param.name; });

TEST(TensorSpecTest, EqualLeavesAreCompatibleWhateverTheirEnvId) {
  EnvSpec other = AtariSpec();
  other.env_id = "BreakoutNoFrameskip-v4";
  EXPECT_TRUE(CheckCompatible(AtariSpec(), other).ok());
}

TEST(TensorSpecTest, NamesTheFirstLeafThatDiffersAndShowsBoth) {
  EnvSpec other = AtariSpec();
  other.observation[0].shape = {96, 96};
  const absl::Status status = CheckCompatible(AtariSpec(), other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "observation leaf 0 differs: the learner expects \"image\" uint8 [84, 84] stack 4, "
            "the env-server has \"image\" uint8 [96, 96] stack 4");
}

TEST(TensorSpecTest, ReportsMissingAndExtraLeaves) {
  EnvSpec more = AtariSpec();
  more.action.push_back({.path = "extra", .dtype = DType::kInt64});
  EXPECT_EQ(CheckCompatible(AtariSpec(), more).message(),
            "action leaf 1 differs: the learner expects no such leaf, the env-server has \"extra\" int64 []");
  EXPECT_EQ(CheckCompatible(more, AtariSpec()).message(),
            "action leaf 1 differs: the learner expects \"extra\" int64 [], the env-server has no such leaf");
}

}  // namespace
}  // namespace kubebeast
