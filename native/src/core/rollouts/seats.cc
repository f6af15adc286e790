#include "rollouts/seats.h"

#include <algorithm>

namespace kubebeast {
namespace {

bool HasSeats(const Hello& hello, bool has_opponents) { return has_opponents || hello.takes_turns; }

}  // namespace

Seats::Seats(const Hello& hello, bool has_opponents, const std::shared_ptr<const UnrollShape>& shape,
             std::int64_t number)
    : shape_(shape),
      num_envs_(hello.num_envs),
      num_agents_(hello.num_agents),
      is_played_(has_opponents ? NumLearning(hello, has_opponents) : 0) {
  const auto add = [&](EnvRange envs, bool is_opponent) {
    const std::size_t unroll_length = is_opponent ? 0 : shape->unroll_length;
    seats_.push_back({envs, is_opponent, RolloutAssembler(shape, envs, unroll_length, number)});
  };
  if (!HasSeats(hello, has_opponents)) {
    add({.first = 0, .count = num_envs_}, false);
    return;
  }
  seats_.reserve(num_envs_);
  for (std::uint32_t env = 0; env < num_envs_; ++env) {
    const std::uint64_t learning = (env / num_agents_ + static_cast<std::uint64_t>(number)) % num_agents_;
    add({.first = env, .count = 1}, has_opponents && env % num_agents_ != learning);
  }
}

std::size_t Seats::NumLearning(const Hello& hello, bool has_opponents) {
  return has_opponents ? hello.num_envs / hello.num_agents : hello.num_envs;
}

std::vector<std::int64_t> Seats::OpponentsOf(std::uint32_t env) const {
  std::vector<std::int64_t> opponents;
  if (seats_.size() == 1) return opponents;
  const std::uint32_t first = env - env % num_agents_;
  for (std::uint32_t other = first; other < first + num_agents_; ++other) {
    if (seats_[other].is_opponent) opponents.push_back(seats_[other].opponent);
  }
  return opponents;
}

void Seats::NoteGames(const ObservationRows& rows) {
  for (std::size_t game = 0; game < is_played_.size(); ++game) {
    const std::size_t first = game * num_agents_;
    const std::size_t end = first + num_agents_;
    bool is_played = false;
    for (std::size_t env = first; env < end; ++env) is_played |= rows.terminated[env] == 0 && rows.truncated[env] == 0;
    for (std::size_t env = first; env < end && is_played && !is_played_[game]; ++env) seats_[env].opponent = -1;
    is_played_[game] = is_played;
  }
}

void Seats::FindActing(const ObservationRows& rows) {
  NoteGames(rows);
  acting_.clear();
  for (Seat& seat : seats_) {
    const std::uint32_t env = seat.envs.first;
    const bool waits = !rows.waiting.empty() && rows.waiting[env] != 0;
    const bool is_absent = rows.is_first[env] != 0 && rows.interrupted[env] != 0;
    if (seats_.size() == 1 || !(waits || is_absent)) acting_.push_back(&seat);
  }
  if (acting_.empty()) acting_.push_back(&seats_.front());
}

void Seats::SetOutputs(const std::shared_ptr<const ModelOutputs>& outputs, std::size_t first_output,
                       const float* core_state) {
  for (Seat* const seat : acting_) {
    const bool begins = seat->assembler.at_unroll_start();
    seat->assembler.SetOutputs(outputs, first_output - seat->envs.first, core_state);
    seat->opponent = outputs->opponents.empty() ? -1 : outputs->opponents[first_output];
    first_output += seat->envs.count;
    if (begins && core_state != nullptr) core_state += seat->envs.count * shape_->core_state_size;
  }
}

std::vector<const std::uint8_t*> Seats::Actions(const ModelOutputs& outputs, std::size_t first_output) {
  const std::vector<LeafSpec>& leaves = shape_->spec.action;
  std::vector<const std::uint8_t*> actions(leaves.size());
  actions_.resize(seats_.size() == 1 ? 0 : leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::size_t row_bytes = leaves[i].row_bytes();
    const std::uint8_t* row = outputs.actions[i].data() + first_output * row_bytes;
    actions[i] = row;
    if (actions_.empty()) continue;
    actions_[i].assign(num_envs_ * row_bytes, 0);
    for (const Seat* const seat : acting_) {
      std::copy_n(row, seat->envs.count * row_bytes, actions_[i].data() + seat->envs.first * row_bytes);
      row += seat->envs.count * row_bytes;
    }
    actions[i] = actions_[i].data();
  }
  return actions;
}

}  // namespace kubebeast
