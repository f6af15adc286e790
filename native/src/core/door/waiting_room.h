// Connections that wait for admission to gRPC.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "door/front_door.h"
#include "sync/clock.h"

namespace kubebeast {

// A queue of connections. For the open lane, those of hosts that do not offend too often are offered in the order of
// arrival. For the slow lane, all are offered, alternately from the oldest and from a random one on: floods show
// themselves while they wait, so the oldest are quiet, but a thousand quiet ones must not delay all others of their
// host. Not thread-safe.
class WaitingRoom {
 public:
  struct Guest {
    int fd = -1;
    std::string peer;
    FrontDoor::Lane lane = FrontDoor::Lane::kOpen;  // kSlow if the host offends too often
    Clock::time_point since;
    bool is_flood = false;  // has sent more than a client sends before an answer: never admitted
  };

  static constexpr std::size_t kMaxGuests = 1024;
  // Shorter than the wait of a gRPC client (20 s).
  static constexpr std::chrono::seconds kPatience{15};

  bool empty() const { return guests_.empty(); }

  // Adds a guest. If the room is full, returns the guest that must leave: a flood, else a random guest of the slow
  // lane, else the new one.
  std::optional<Guest> Add(Guest guest);
  // Returns a guest that has waited for too long; call until there is none.
  std::optional<Guest> TakeLate(Clock::time_point now);
  // Offers guests for the lane, `most` at most, to `take(Guest&)`, which returns that it took the guest over, left it,
  // or accepts no more. Floods are not offered.
  enum class Answer : std::uint8_t { kTaken, kLeft, kEnough };
  template <typename Take>
  void Offer(FrontDoor::Lane lane, std::size_t most, const Take& take) {
    const std::size_t size = guests_.size();
    by_lot_ = lane == FrontDoor::Lane::kSlow && !by_lot_;
    const std::size_t first = by_lot_ && size > 0 ? random_() % size : 0;
    for (std::size_t i = 0; i < size && most > 0; ++i) {
      const std::size_t index = (first + i) % size;
      const Guest& guest = guests_[index];
      if (guest.is_flood || (lane == FrontDoor::Lane::kOpen && guest.lane != lane)) continue;
      --most;
      const Answer answer = take(guests_[index]);
      if (answer == Answer::kEnough) break;
      if (answer == Answer::kTaken) guests_[index].fd = -1;
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.fd < 0; });
  }
  std::vector<Guest> TakeAll() { return std::exchange(guests_, {}); }

 private:
  std::vector<Guest> guests_;  // oldest first
  bool by_lot_ = false;        // true if the last offer began at a random guest
  std::minstd_rand random_{std::random_device()()};
};

}  // namespace kubebeast
