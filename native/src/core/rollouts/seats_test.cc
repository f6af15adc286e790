#include "rollouts/seats.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "testing/rollout_test_util.h"

namespace kubebeast {
namespace {

enum class Kind { kFirst, kAbsent, kInner, kWaiting, kFinal, kInterrupted };

using enum Kind;

constexpr std::int64_t kNone = -1;

// A stream in which the first agent of its first environment learns, and opponents play all others of that environment.
class SeatsTest : public testing::Test {
 protected:
  void Begin(std::uint32_t num_agents, std::uint32_t num_envs) {
    Hello hello;
    hello.num_agents = num_agents;
    hello.num_envs = num_envs;
    hello.takes_turns = true;
    seats_ = std::make_unique<Seats>(hello, /*has_opponents=*/true, shape_, /*number=*/0);
  }

  // Takes one row for each agent. `opponents`: the one that answers the row of each agent, or none.
  void Take(const std::vector<Kind>& kinds, const std::vector<std::int64_t>& opponents) {
    StepFlags flags;
    for (const Kind kind : kinds) {
      flags.is_first.push_back(kind == kFirst || kind == kAbsent);
      flags.terminated.push_back(kind == kFinal);
      flags.truncated.push_back(kind == kAbsent || kind == kInterrupted);
      flags.interrupted.push_back(kind == kAbsent || kind == kInterrupted);
      flags.waiting.push_back(kind == kWaiting);
    }
    const auto rows = MakeObservation(num_steps_++, flags);
    seats_->FindActing(*rows);
    std::vector<std::int32_t> frames;
    std::vector<std::int64_t> of_rows;
    for (Seat* const seat : seats_->acting()) {
      seat->assembler.AddStep(rows);
      frames.push_back(0);
      of_rows.push_back(opponents[seat->envs.first]);
    }
    const auto outputs = std::make_shared<ModelOutputs>(*Think(frames, 1));
    outputs->opponents = std::move(of_rows);
    seats_->SetOutputs(outputs, 0, core_state_.data());
  }

  std::vector<std::int64_t> Opponents() const { return seats_->OpponentsOf(0); }

 private:
  const std::shared_ptr<const UnrollShape> shape_ = TestShape(4);
  const std::vector<float> core_state_ = std::vector<float>(16);
  std::unique_ptr<Seats> seats_;
  std::uint64_t num_steps_ = 0;
};

TEST_F(SeatsTest, AGameNamesTheOpponentThatHadATurnInIt) {
  Begin(2, 2);
  Take({kFirst, kAbsent}, {kNone, kNone});
  EXPECT_EQ(Opponents(), (std::vector{kNone}));
  Take({kWaiting, kFirst}, {kNone, 7});
  EXPECT_EQ(Opponents(), (std::vector<std::int64_t>{7}));
}

TEST_F(SeatsTest, AGameThatEndsBeforeTheFirstTurnOfAnOpponentNamesNone) {
  Begin(2, 2);
  Take({kFirst, kAbsent}, {kNone, kNone});
  Take({kWaiting, kFirst}, {kNone, 7});
  Take({kFinal, kFinal}, {kNone, 7});
  Take({kFirst, kAbsent}, {kNone, kNone});
  EXPECT_EQ(Opponents(), (std::vector{kNone}));
}

TEST_F(SeatsTest, AnOpponentThatLeftEarlyPlayedInTheGame) {
  Begin(3, 3);
  Take({kFirst, kAbsent, kAbsent}, {kNone, kNone, kNone});
  Take({kWaiting, kFirst, kAbsent}, {kNone, 7, kNone});
  Take({kInner, kFinal, kAbsent}, {kNone, 7, kNone});
  Take({kWaiting, kAbsent, kFirst}, {kNone, kNone, 9});
  EXPECT_EQ(Opponents(), (std::vector<std::int64_t>{7, 9}));
  Take({kFinal, kAbsent, kFinal}, {kNone, kNone, 9});
  Take({kFirst, kAbsent, kAbsent}, {kNone, kNone, kNone});
  Take({kWaiting, kFirst, kAbsent}, {kNone, 5, kNone});
  EXPECT_EQ(Opponents(), (std::vector<std::int64_t>{5, kNone}));
}

TEST_F(SeatsTest, AnAgentThatJoinsAsTheOnlyOtherOneLeavesBeginsNoGame) {
  Begin(3, 3);
  Take({kFirst, kFirst, kAbsent}, {kNone, 7, kNone});
  Take({kFinal, kFinal, kFirst}, {kNone, 7, 9});
  EXPECT_EQ(Opponents(), (std::vector<std::int64_t>{7, 9}));
}

TEST_F(SeatsTest, AGameOfOneEnvironmentLeavesThoseOfOthersAlone) {
  Begin(2, 4);
  Take({kFirst, kAbsent, kFirst, kAbsent}, {kNone, kNone, 3, kNone});
  Take({kWaiting, kFirst, kFinal, kAbsent}, {kNone, 7, 3, kNone});
  Take({kInner, kWaiting, kFirst, kAbsent}, {kNone, kNone, 4, kNone});
  EXPECT_EQ(Opponents(), (std::vector<std::int64_t>{7}));
}

TEST_F(SeatsTest, TheGameAfterABrokenEnvironmentIsANewOne) {
  Begin(2, 2);
  Take({kFirst, kFirst}, {kNone, 7});
  Take({kInterrupted, kInterrupted}, {kNone, 7});
  Take({kAbsent, kAbsent}, {kNone, kNone});
  Take({kFirst, kAbsent}, {kNone, kNone});
  EXPECT_EQ(Opponents(), (std::vector{kNone}));
}

}  // namespace
}  // namespace kubebeast
