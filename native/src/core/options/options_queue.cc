#include "options/options_queue.h"

#include <algorithm>
#include <utility>

namespace kubebeast {

absl::Status OptionsQueue::Push(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (absl::Status status = ValidateOptions(text); !status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  for (const std::string& text : texts) texts_.push_back(std::make_shared<const std::string>(text));
  if (!texts_.empty()) newest_ = texts_.back();
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> OptionsQueue::WaitForRoom(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  bool in_time = true;
  while (in_time && !closed_ && !HasRoom()) in_time = changed_.WaitUntil(mutex_, deadline);
  if (closed_) return absl::CancelledError("closed");
  if (!HasRoom()) return absl::DeadlineExceededError("no room");
  return NumFree();
}

OptionsText OptionsQueue::Take() {
  const MutexLock lock(mutex_);
  if (texts_.empty()) return nullptr;
  OptionsText oldest = std::move(texts_.front());
  texts_.pop_front();
  if (HasRoom()) changed_.NotifyAll();
  return oldest;
}

OptionsText OptionsQueue::newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

void OptionsQueue::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

std::size_t OptionsQueue::NumFree() const {
  const std::size_t places = std::max(kMinPlaces, static_cast<std::size_t>(stats_->envs.load()));
  return places - std::min(places, texts_.size());
}

bool OptionsQueue::HasRoom() const { return NumFree() > 0 && NumFree() >= texts_.size(); }

}  // namespace kubebeast
