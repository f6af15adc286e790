// Rows of one stream → unrolls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rollouts/unroll.h"

namespace kubebeast {

// Cuts the rows of one stream into unrolls of T transitions that overlap by one row: row T of an unroll is row 0 of the
// next. A stream alternates AddRow and SetOutputs, beginning with AddRow. Not thread-safe.
class RolloutAssembler {
 public:
  RolloutAssembler(std::shared_ptr<const UnrollShape> shape, std::uint32_t num_envs);

  struct Added {
    std::size_t num_steps = 0;               // valid transitions that this row ends, over all environments
    std::shared_ptr<const Unroll> finished;  // the unroll that this row completes, or null
  };
  Added AddRow(std::shared_ptr<const ObservationRows> observation);

  // Stores the model's answer to the newest row, which is rows first_output .. first_output + B of `outputs`.
  // core_state [B, core_state_size] is read when at_unroll_start().
  void SetOutputs(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output, const float* core_state);

  // Whether the newest row is row 0 of the started unroll.
  bool at_unroll_start() const { return started_->num_steps() == 0; }

  // The newest row with the history that it needs, oldest first.
  std::vector<Row> Window() const;

  // Ends the started unroll early; the assembler is done. Null when there was no transition.
  std::shared_ptr<const Unroll> Finish(Unroll::End end);

 private:
  void StartUnroll(std::vector<Row> history);

  std::shared_ptr<const UnrollShape> shape_;
  std::uint32_t num_envs_;
  std::shared_ptr<Unroll> started_;  // without rows before the first one
};

}  // namespace kubebeast
