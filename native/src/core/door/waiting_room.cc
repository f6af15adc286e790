#include "door/waiting_room.h"

#include <algorithm>

namespace kubebeast {

std::optional<WaitingRoom::Guest> WaitingRoom::Add(Guest guest) {
  if (guests_.size() < kMaxGuests) {
    guests_.push_back(std::move(guest));
    return std::nullopt;
  }
  auto leaving = std::find_if(guests_.begin(), guests_.end(), [](const Guest& other) { return other.is_flood; });
  if (leaving == guests_.end()) {
    std::vector<std::ptrdiff_t> slow;
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      if (guests_[i].lane == FrontDoor::Lane::kSlow) slow.push_back(static_cast<std::ptrdiff_t>(i));
    }
    if (slow.empty()) return guest;
    leaving = guests_.begin() + slow[random_() % slow.size()];
  }
  Guest left = std::move(*leaving);
  guests_.erase(leaving);
  guests_.push_back(std::move(guest));
  return left;
}

std::optional<WaitingRoom::Guest> WaitingRoom::TakeLate(Clock::time_point now) {
  if (guests_.empty() || now < guests_.front().since + kPatience) return std::nullopt;
  Guest late = std::move(guests_.front());
  guests_.erase(guests_.begin());
  return late;
}

}  // namespace kubebeast
