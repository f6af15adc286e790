#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "inference/dynamic_batcher.h"
#include "inference/inference_batch.h"
#include "operations.h"

namespace kubebeast::instructions {
namespace {

constexpr std::size_t kStreams = 64;
constexpr std::size_t kBatchRows = 32;

struct State {
  DynamicBatcher<PendingStep> batcher{
      {.min_rows = kBatchRows, .max_rows = kBatchRows, .timeout = std::chrono::hours(1)}};
  std::vector<PendingRows> rows{{.unroll = std::make_shared<Unroll>()}};
  std::vector<char> streams = std::vector<char>(kStreams);  // producers are named by the addresses of these

  void Batch() {
    for (const char& stream : streams) batcher.Push(&stream, 1, {.actor = nullptr, .parts = rows});
    for (std::size_t rows = 0; rows < kStreams; rows += kBatchRows) {
      const auto batch = batcher.Pop(Clock::time_point::max());
      Require(batch.ok() && batch->num_rows == kBatchRows, "batch");
    }
  }
};

}  // namespace

Operation Batch() {
  const auto state = std::make_shared<State>();
  for (const char& stream : state->streams) state->batcher.Join(&stream);
  return [state] { state->Batch(); };
}

}  // namespace kubebeast::instructions
