#include "tensors/buffer_pool.h"

#include <gtest/gtest.h>

namespace kubebeast {
namespace {

constexpr std::int64_t kLarge = BufferPool::kMinRecycledBytes;

TEST(BufferPoolTest, LargeBufferIsUsedAgain) {
  const auto pool = std::make_shared<BufferPool>();
  const void* const first = pool->Allocate(DType::kUint8, {kLarge}).data.get();
  EXPECT_EQ(pool->num_free(), 1);
  const Array second = pool->Allocate(DType::kFloat32, {kLarge / 8, 2});
  EXPECT_EQ(second.data.get(), first);
  EXPECT_EQ(pool->num_free(), 0);
}

TEST(BufferPoolTest, BufferInUseIsNotGivenOutAgain) {
  const auto pool = std::make_shared<BufferPool>();
  const Array first = pool->Allocate(DType::kUint8, {kLarge});
  const Array second = pool->Allocate(DType::kUint8, {kLarge});
  EXPECT_NE(first.data.get(), second.data.get());
}

TEST(BufferPoolTest, BufferTooSmallOrFarTooLargeIsLeftAlone) {
  const auto pool = std::make_shared<BufferPool>();
  pool->Allocate(DType::kUint8, {2 * kLarge});
  const Array larger = pool->Allocate(DType::kUint8, {2 * kLarge + 1});
  EXPECT_EQ(pool->num_free(), 1);
  pool->Allocate(DType::kUint8, {5 * kLarge});
  const Array smaller = pool->Allocate(DType::kUint8, {kLarge});
  EXPECT_EQ(pool->num_free(), 1) << "the buffer of twice the size was taken, the one of five times was not";
}

TEST(BufferPoolTest, SmallestBufferThatFitsIsTakenAndOfEqualOnesTheNewest) {
  const auto pool = std::make_shared<BufferPool>();
  std::vector<Array> arrays;
  for (const std::int64_t size : {kLarge, kLarge, kLarge + 1}) arrays.push_back(pool->Allocate(DType::kUint8, {size}));
  const void* const newest = arrays[1].data.get();
  for (Array& array : arrays) array = {};
  EXPECT_EQ(pool->Allocate(DType::kUint8, {kLarge}).data.get(), newest);
}

TEST(BufferPoolTest, SmallBuffersAreNotKept) {
  const auto pool = std::make_shared<BufferPool>();
  pool->Allocate(DType::kUint8, {16});
  pool->Allocate(DType::kUint8, {0});
  EXPECT_EQ(pool->num_free(), 0);
}

TEST(BufferPoolTest, KeepsABoundedNumberOfBuffers) {
  const auto pool = std::make_shared<BufferPool>();
  std::vector<Array> arrays(2 * BufferPool::kMaxFreeBuffers);
  for (Array& array : arrays) array = pool->Allocate(DType::kUint8, {kLarge});
  arrays.clear();
  EXPECT_EQ(pool->num_free(), BufferPool::kMaxFreeBuffers);
}

TEST(BufferPoolTest, ArrayOutlivesThePool) {
  auto pool = std::make_shared<BufferPool>();
  const Array array = pool->Allocate(DType::kInt32, {kLarge / 4});
  pool.reset();
  array.as<std::int32_t>()[kLarge / 4 - 1] = 7;
  EXPECT_EQ(array.as<std::int32_t>()[kLarge / 4 - 1], 7);
}

}  // namespace
}  // namespace kubebeast
