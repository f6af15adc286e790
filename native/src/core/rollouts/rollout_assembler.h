// Assembly of the vector steps of one stream into unrolls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rollouts/unroll.h"

namespace kubebeast {

// Assembler that cuts the steps of some environments of a stream into unrolls of T transitions that overlap by one:
// step T of an unroll is step 0 of the next. If T = 0, there are no unrolls, and only the window is kept. A stream
// alternates AddStep and SetOutputs, beginning with AddStep. Not thread-safe.
class RolloutAssembler {
 public:
  // unroll_length: T. stream: number of the stream, for its unrolls.
  RolloutAssembler(std::shared_ptr<const UnrollShape> shape, EnvRange envs, std::size_t unroll_length,
                   std::int64_t stream);
  // All environments of a stream, with the T of `shape`.
  explicit RolloutAssembler(const std::shared_ptr<const UnrollShape>& shape, std::uint32_t num_envs,
                            std::int64_t stream = 0)
      : RolloutAssembler(shape, {.first = 0, .count = num_envs}, shape->unroll_length, stream) {}

  struct Added {
    std::size_t num_steps = 0;               // valid transitions that this step ends, over its environments
    std::shared_ptr<const Unroll> finished;  // the unroll that this step completes, or null
  };
  Added AddStep(std::shared_ptr<const ObservationRows> observation);

  // Stores the model's outputs for the newest step: rows first_output .. first_output + B of `outputs`.
  // core_state [B, core_state_size] is read only if at_unroll_start().
  void SetOutputs(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state);

  // Returns true if the newest step is step 0 of the started unroll.
  bool at_unroll_start() const { return makes_unrolls() && started_->length() == 0; }

  // Returns the started unroll: history first, the newest step last. The next AddStep changes it.
  std::shared_ptr<const Unroll> started() const { return started_; }

  // Ends the started unroll early, after which the assembler is done. Returns null if there was no transition.
  std::shared_ptr<const Unroll> Finish(Unroll::End end);

 private:
  bool makes_unrolls() const { return unroll_length_ > 0; }
  // Returns the newest step preceded by the history that it needs, oldest first.
  std::vector<VectorStep> Window() const;
  void StartUnroll(std::vector<VectorStep> history);

  std::shared_ptr<const UnrollShape> shape_;
  EnvRange envs_;
  std::size_t unroll_length_;
  std::int64_t stream_;
  std::int64_t num_started_ = 0;     // unrolls
  std::shared_ptr<Unroll> started_;  // has no steps before the first AddStep
};

}  // namespace kubebeast
