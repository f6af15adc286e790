#include "door/waiting_room.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace kubebeast {
namespace {

using Answer = WaitingRoom::Answer;
using Lane = FrontDoor::Lane;
using std::chrono::seconds;

const Clock::time_point kEntered{};

WaitingRoom::Guest Guest(int fd, Lane lane) { return {.fd = fd, .peer = "", .lane = lane, .since = kEntered}; }

std::vector<int> TakeAllOf(WaitingRoom& room, Lane lane) {
  std::vector<int> taken;
  room.Offer(lane, WaitingRoom::kMaxGuests, [&](WaitingRoom::Guest& guest) {
    taken.push_back(guest.fd);
    return Answer::kTaken;
  });
  return taken;
}

TEST(WaitingRoomTest, OpenLaneLeavesInOrder) {
  WaitingRoom room;
  for (int fd = 0; fd < 4; ++fd) room.Add(Guest(fd, fd == 1 ? Lane::kSlow : Lane::kOpen));
  EXPECT_EQ(TakeAllOf(room, Lane::kOpen), std::vector({0, 2, 3}));
  EXPECT_EQ(TakeAllOf(room, Lane::kSlow), std::vector({1}));
  EXPECT_TRUE(room.empty());
}

TEST(WaitingRoomTest, SlowLaneIsOfferedToAll) {
  WaitingRoom room;
  for (int fd = 0; fd < 4; ++fd) room.Add(Guest(fd, fd == 1 ? Lane::kSlow : Lane::kOpen));
  EXPECT_EQ(TakeAllOf(room, Lane::kSlow).size(), 4);
}

TEST(WaitingRoomTest, SlowLaneIsOfferedFromTheOldestOnAndByLot) {
  WaitingRoom room;
  for (int fd = 0; fd < 4; ++fd) room.Add(Guest(fd, Lane::kSlow));
  std::set<int> first;
  for (int offer = 0; offer < 200; ++offer) {
    int offered = -1;
    room.Offer(Lane::kSlow, 1, [&](WaitingRoom::Guest& guest) {
      offered = guest.fd;
      return Answer::kLeft;
    });
    if (offer % 2 == 0) {
      first.insert(offered);
    } else {
      EXPECT_EQ(offered, 0);
    }
  }
  EXPECT_EQ(first.size(), 4);
}

TEST(WaitingRoomTest, GuestThatIsNotTakenStays) {
  WaitingRoom room;
  for (int fd = 0; fd < 3; ++fd) room.Add(Guest(fd, Lane::kOpen));
  std::vector<int> seen;
  room.Offer(Lane::kOpen, 9, [&](WaitingRoom::Guest& guest) {
    seen.push_back(guest.fd);
    return guest.fd == 0 ? Answer::kLeft : Answer::kEnough;
  });
  EXPECT_EQ(seen, std::vector({0, 1}));
  EXPECT_EQ(TakeAllOf(room, Lane::kOpen), std::vector({0, 1, 2}));
}

TEST(WaitingRoomTest, FullRoomSendsAwayGuestsOfTheSlowLane) {
  WaitingRoom room;
  const int most = static_cast<int>(WaitingRoom::kMaxGuests);
  for (int fd = 0; fd < most; ++fd) room.Add(Guest(fd, fd == 7 ? Lane::kSlow : Lane::kOpen));
  const auto left = room.Add(Guest(most, Lane::kOpen));
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->fd, 7);
  const auto refused = room.Add(Guest(most + 1, Lane::kOpen));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->fd, most + 1) << "there is nobody else";
}

TEST(WaitingRoomTest, FloodsWaitInVainAndLeaveFirst) {
  WaitingRoom room;
  const int most = static_cast<int>(WaitingRoom::kMaxGuests);
  for (int fd = 0; fd < most; ++fd) room.Add(Guest(fd, Lane::kSlow));
  room.Offer(Lane::kSlow, WaitingRoom::kMaxGuests, [](WaitingRoom::Guest& guest) {
    guest.is_flood = guest.fd == 7;
    return Answer::kLeft;
  });
  for (int offer = 0; offer < 2; ++offer) {
    room.Offer(Lane::kSlow, WaitingRoom::kMaxGuests, [](WaitingRoom::Guest& guest) {
      EXPECT_NE(guest.fd, 7);
      return Answer::kLeft;
    });
  }
  EXPECT_EQ(room.Add(Guest(most, Lane::kOpen))->fd, 7);
}

TEST(WaitingRoomTest, GuestsWaitForSoLong) {
  WaitingRoom room;
  room.Add(Guest(1, Lane::kSlow));
  room.Add({.fd = 2, .peer = "", .lane = Lane::kOpen, .since = kEntered + seconds(1)});
  EXPECT_FALSE(room.TakeLate(kEntered + WaitingRoom::kPatience - seconds(1)).has_value());
  EXPECT_EQ(room.TakeLate(kEntered + WaitingRoom::kPatience)->fd, 1);
  EXPECT_FALSE(room.TakeLate(kEntered + WaitingRoom::kPatience).has_value());
}

}  // namespace
}  // namespace kubebeast
