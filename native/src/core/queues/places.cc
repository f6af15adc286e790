#include "queues/places.h"

#include <algorithm>
#include <utility>

namespace kubebeast {

Places::Places(QueueCapacity capacity, std::vector<double> weights)
    : capacity_(capacity), shares_(std::move(weights)), patience_(shares_.num_lanes()), lanes_(shares_.num_lanes()) {}

Places::Producer Places::Join(std::size_t lane, std::size_t size) {
  lanes_[lane].produced += size;
  ++lanes_[lane].num_producers;
  lanes_[lane].is_silent = false;
  producers_.emplace(++last_producer_, State{.lane = lane, .size = size});
  return last_producer_;
}

void Places::Leave(Producer producer) {
  const auto found = producers_.find(producer);
  if (found == producers_.end()) return;
  State& state = found->second;
  Stop(state);
  Lane& lane = lanes_[state.lane];
  lane.produced -= state.size;
  --lane.num_producers;
  if (state.away) --lane.num_away;
  producers_.erase(found);
  next_reclaim_ = Clock::time_point::min();  // all remaining producers of the lane may be away
}

void Places::Take(Producer producer) {
  State& state = producers_.at(producer);
  state.runs = true;
  state.owes = false;
  lanes_[state.lane].running += state.size;
}

bool Places::GiveBack(Producer producer) {
  State& state = producers_.at(producer);
  Stop(state);
  return !std::exchange(state.owes, false);
}

void Places::Await(Producer producer, Clock::time_point since) {
  State& state = producers_.at(producer);
  state.silent = true;
  state.since = since;
  Clock::time_point& heard_at = lanes_[state.lane].heard_at;
  if (!state.runs) heard_at = std::max(heard_at, since);  // the handshake counts as a sign
  next_reclaim_ = std::min(next_reclaim_, DueOf(state));
}

void Places::Return(Producer producer, Clock::time_point now) {
  State& state = producers_.at(producer);
  if (!std::exchange(state.silent, false)) return;
  Lane& lane = lanes_[state.lane];
  if (std::exchange(state.away, false)) --lane.num_away;
  lane.is_silent = false;
  lane.heard_at = std::max(lane.heard_at, now);
  // The silence before its first step includes the handshake and the first reset.
  if (state.runs || state.owes) patience_.Note(state.lane, state.size, now - state.since);
  // Before the first step of all lanes no producer was due; now those that are silent since then may be.
  if (next_reclaim_ == Clock::time_point::max()) next_reclaim_ = now;
}

void Places::Reclaim(Clock::time_point now) {
  if (now < next_reclaim_) return;
  // Producers that are taken away shorten the limit for the others of their lane.
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    next_reclaim_ = Clock::time_point::max();
    for (auto& [name, state] : producers_) {
      if (!state.silent || state.away) continue;
      if (const Clock::time_point due = DueOf(state); due > now) {
        next_reclaim_ = std::min(next_reclaim_, due);
      } else {
        TakeAway(state);
        is_settled = false;
      }
    }
  }
  for (Lane& lane : lanes_) {
    if (lane.is_silent || lane.num_away == 0 || lane.num_away < lane.num_producers) continue;
    const Clock::time_point due = lane.heard_at + Patience::kWithLane;
    lane.is_silent = due <= now;
    if (!lane.is_silent) next_reclaim_ = std::min(next_reclaim_, due);
  }
}

void Places::TakeAway(State& state) {
  state.away = true;
  ++lanes_[state.lane].num_away;
  state.owes = state.owes || state.runs;
  Stop(state);
}

std::size_t Places::num_running() const {
  std::size_t running = 0;
  for (const Lane& lane : lanes_) running += lane.running;
  return running;
}

std::size_t Places::capacity() const {
  std::size_t produced = 0;
  for (const Lane& lane : lanes_) produced += lane.produced;
  return std::min(capacity_.spare + produced, capacity_.most);
}

// Lanes without producers do not count: the others can fill a batch without the items in them.
std::size_t Places::CapacityOf(std::size_t lane) const {
  if (lanes_.size() == 1) return capacity();
  std::vector<bool> are_producing;
  are_producing.reserve(lanes_.size());
  for (std::size_t each = 0; each < lanes_.size(); ++each) are_producing.push_back(IsProducing(each));
  return std::min(shares_.MostOf(lane, capacity_.spare, are_producing) + lanes_[lane].produced,
                  shares_.MostOf(lane, capacity_.most, are_producing));
}

void Places::Stop(State& state) {
  if (std::exchange(state.runs, false)) lanes_[state.lane].running -= state.size;
}

Clock::time_point Places::DueOf(const State& state) const {
  const Clock::duration patience = patience_.With(state.lane, state.size, lanes_[state.lane].num_away > 0);
  // Subtracting a time before the epoch, which is the start of the machine, would overflow.
  const Clock::time_point since = std::max(state.since, Clock::time_point());
  const bool is_endless = patience > Clock::time_point::max() - since;
  return is_endless ? Clock::time_point::max() : since + patience;
}

}  // namespace kubebeast
