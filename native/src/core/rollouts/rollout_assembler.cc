#include "rollouts/rollout_assembler.h"

#include <algorithm>
#include <utility>

namespace kubebeast {

RolloutAssembler::RolloutAssembler(std::shared_ptr<const UnrollShape> shape, EnvRange envs, std::size_t unroll_length,
                                   std::int64_t stream)
    : shape_(std::move(shape)), envs_(envs), unroll_length_(unroll_length), stream_(stream) {}

RolloutAssembler::Added RolloutAssembler::AddStep(std::shared_ptr<const ObservationRows> observation) {
  Added added;
  if (started_ == nullptr) {
    StartUnroll({});
    started_->steps.push_back({std::move(observation), nullptr, 0});
    return added;
  }
  const VectorStep& previous = started_->steps.back();
  for (std::uint32_t env = envs_.first; env < envs_.end(); ++env) {
    added.num_steps += previous.is_final(env) || observation->interrupted[env] != 0 ? 0 : 1;
  }
  started_->steps.push_back({std::move(observation), nullptr, 0});
  if (!makes_unrolls()) {
    started_->steps = Window();
  } else if (started_->length() == unroll_length_) {
    std::vector<VectorStep> window = Window();
    added.finished = std::move(started_);
    StartUnroll(std::move(window));
    started_->origin = started_->steps.size() - 1;
  }
  return added;
}

void RolloutAssembler::SetOutputs(std::shared_ptr<const ModelOutputs> outputs, std::size_t first_output,
                                  const float* core_state) {
  if (at_unroll_start()) started_->core_state.assign(core_state, core_state + envs_.count * shape_->core_state_size);
  VectorStep& newest = started_->steps.back();
  newest.outputs = std::move(outputs);
  newest.first_output = first_output;
}

std::vector<VectorStep> RolloutAssembler::Window() const {
  const std::vector<VectorStep>& steps = started_->steps;
  const std::size_t size = std::min(steps.size(), shape_->history() + 1);
  return {steps.end() - static_cast<std::ptrdiff_t>(size), steps.end()};
}

std::shared_ptr<const Unroll> RolloutAssembler::Finish(Unroll::End end) {
  if (started_ == nullptr || !makes_unrolls() || at_unroll_start()) return nullptr;
  started_->end = end;
  return std::move(started_);
}

void RolloutAssembler::StartUnroll(std::vector<VectorStep> history) {
  started_ = std::make_shared<Unroll>();
  started_->envs = envs_;
  started_->stream = stream_;
  started_->number = num_started_++;
  started_->steps = std::move(history);
  started_->steps.reserve(shape_->history() + unroll_length_ + 1);
}

}  // namespace kubebeast
