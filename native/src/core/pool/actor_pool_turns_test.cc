// Pools with environments of several agents: turns, and agents that opponents play.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "testing/pool_test_util.h"

namespace kubebeast {
namespace {

constexpr std::uint32_t kAgents = 2;

enum class Kind { kFirst, kAbsent, kInner, kWaiting, kTerminated };

std::int32_t Frame(std::uint32_t agent, std::uint64_t step) { return static_cast<std::int32_t>(100 * agent + step); }

// A stream with one environment of two agents that take turns; the rows are those that a test chooses.
class TurnsActor : public TestActor {
 public:
  explicit TurnsActor(const std::string& address, bool takes_turns = true)
      : TestActor(address, kAgents), takes_turns_(takes_turns) {}

  bool Enter() {
    v1::ActRequest request = HelloMessage();
    request.mutable_hello()->set_num_agents(kAgents);
    request.mutable_hello()->set_takes_turns(takes_turns_);
    if (!Send(request)) return false;
    const auto response = Read();
    return response.has_value() && response->has_welcome();
  }

  void SendRows(const std::vector<Kind>& kinds, const std::vector<float>& rewards = {0, 0}) {
    v1::ActRequest request;
    v1::Observations& message = *request.mutable_observations();
    std::string frames;
    const auto flags = [&kinds](auto is_set) {
      std::string column;
      for (const Kind kind : kinds) column.push_back(is_set(kind) ? 1 : 0);
      return column;
    };
    for (std::uint32_t agent = 0; agent < kAgents; ++agent) {
      const bool is_first = kinds[agent] == Kind::kFirst || kinds[agent] == Kind::kAbsent;
      const std::int32_t frame = Frame(agent, step_);
      for (std::size_t i = 0; i < (is_first ? kStack : 1); ++i) {
        frames.append(reinterpret_cast<const char*>(&frame), sizeof(frame));
      }
      if (kinds[agent] != Kind::kTerminated) continue;
      v1::Episode& episode = *message.add_episodes();
      episode.set_env(agent);
      episode.set_episode_return(rewards[agent]);
    }
    message.set_step(step_);
    message.add_leaves(frames);
    message.add_leaves(std::string(kAgents * 8, '\0'));
    message.set_rewards(rewards.data(), kAgents * sizeof(float));
    message.set_terminated(flags([](Kind kind) { return kind == Kind::kTerminated; }));
    message.set_truncated(flags([](Kind kind) { return kind == Kind::kAbsent; }));
    message.set_interrupted(flags([](Kind kind) { return kind == Kind::kAbsent; }));
    message.set_is_first(flags([](Kind kind) { return kind == Kind::kFirst || kind == Kind::kAbsent; }));
    message.set_waiting(flags([](Kind kind) { return kind == Kind::kWaiting; }));
    Send(request);
  }

  // Returns the choices of both agents.
  std::vector<std::int64_t> ReadChoices() {
    const auto response = Read();
    EXPECT_TRUE(response.has_value() && response->has_actions());
    if (!response.has_value() || !response->has_actions()) return {};
    EXPECT_EQ(response->actions().step(), step_++);
    std::vector<std::int64_t> choices(kAgents);
    std::memcpy(choices.data(), response->actions().leaves(0).data(), kAgents * sizeof(std::int64_t));
    return choices;
  }

  std::uint64_t step_ = 0;

 private:
  const bool takes_turns_;
};

class ActorPoolTurnsTest : public OpenPoolTest {
 protected:
  void Open(bool opponents) {
    StartOpenPool([opponents](PoolOptions& options) {
      options.unroll_length = 2;
      options.batch_size = 1;
      options.opponents = opponents;
    });
  }

  // Answers the next batch, the rows of opponents as those of `opponent`; returns its number of rows.
  std::size_t Answer(std::int64_t opponent = -1) {
    auto batch = pool_->NextInference(kPatience);
    EXPECT_TRUE(batch.ok());
    if (!batch.ok()) return 0;
    const std::size_t num_rows = (*batch)->num_rows();
    opponents_.assign((*batch)->opponent.as<bool>(), (*batch)->opponent.as<bool>() + num_rows);
    std::vector<std::int64_t> versions;
    for (const bool is_opponent : opponents_) versions.push_back(is_opponent ? opponent : -1);
    EXPECT_TRUE(AnswerBatch(**batch, 1, opponent < 0 ? nullptr : versions.data()).ok());
    return num_rows;
  }

  std::vector<bool> opponents_;  // those of the newest batch
};

TEST_F(ActorPoolTurnsTest, OnlyTheAgentWithTheTurnIsAskedAndOthersGetZeros) {
  Open(/*opponents=*/false);
  TurnsActor actor(pool_->address());
  ASSERT_TRUE(actor.Enter());
  actor.SendRows({Kind::kFirst, Kind::kAbsent});
  EXPECT_EQ(Answer(), 1U);
  actor.ReadChoices();
  actor.SendRows({Kind::kWaiting, Kind::kFirst});
  EXPECT_EQ(Answer(), 1U);
  EXPECT_EQ(actor.ReadChoices(), (std::vector<std::int64_t>{0, ChoiceFor(Frame(1, 1))}));
  actor.SendRows({Kind::kInner, Kind::kWaiting});
  EXPECT_EQ(Answer(), 1U);
  EXPECT_EQ(actor.ReadChoices(), (std::vector<std::int64_t>{ChoiceFor(Frame(0, 2)), 0}));
}

TEST_F(ActorPoolTurnsTest, AnUnrollHasTheTurnsOfOneAgentAndTheRewardsUntilTheNextOne) {
  Open(/*opponents=*/false);
  TurnsActor actor(pool_->address());
  ASSERT_TRUE(actor.Enter());
  const std::vector<std::vector<Kind>> steps = {{Kind::kFirst, Kind::kAbsent},
                                                {Kind::kWaiting, Kind::kFirst},
                                                {Kind::kInner, Kind::kWaiting},
                                                {Kind::kWaiting, Kind::kInner},
                                                {Kind::kTerminated, Kind::kTerminated}};
  for (const std::vector<Kind>& kinds : steps) {
    const bool ends = kinds[0] == Kind::kTerminated;
    actor.SendRows(kinds, ends ? std::vector<float>{-1, 1} : std::vector<float>{0, 0});
    Answer();
    actor.ReadChoices();
  }
  std::vector<std::vector<std::int32_t>> frames;
  std::vector<float> last_rewards;
  for (int i = 0; i < 2; ++i) {
    auto batch = pool_->NextRollouts(kPatience);
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->num_transitions, 2U);
    EXPECT_FALSE(batch->terminated.as<bool>()[1]);
    EXPECT_TRUE(batch->terminated.as<bool>()[2]);
    std::vector<std::int32_t> newest;
    for (std::size_t t = 0; t <= 2; ++t) {
      newest.push_back(batch->observation[0].as<std::int32_t>()[t * kStack + kStack - 1]);
    }
    frames.push_back(newest);
    last_rewards.push_back(batch->rewards.as<float>()[2]);
  }
  EXPECT_EQ(frames, (std::vector<std::vector<std::int32_t>>{{0, 2, 4}, {101, 103, 104}}));
  EXPECT_EQ(last_rewards, (std::vector<float>{-1, 1}));
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(ActorPoolTurnsTest, AStreamWaitsForRoomAsAWholeAndNotForAnAgentThatBeginsLater) {
  StartOpenPool([](PoolOptions& options) {
    options.unroll_length = 1;
    options.batch_size = 1;
    options.max_queued_rollouts = 1;
  });
  TurnsActor actor(pool_->address());
  ASSERT_TRUE(actor.Enter());
  const std::vector<std::vector<Kind>> steps = {{Kind::kFirst, Kind::kAbsent}, {Kind::kWaiting, Kind::kFirst}};
  for (const std::vector<Kind>& kinds : steps) {
    actor.SendRows(kinds);
    EXPECT_EQ(Answer(), 1U);
    actor.ReadChoices();
  }
  actor.SendRows({Kind::kInner, Kind::kWaiting});  // ends an unroll
  ASSERT_TRUE(StatBecomes(*pool_, "streams_parked", 1));
  EXPECT_EQ(Stat(*pool_, "rollouts_running"), 0);
  EXPECT_TRUE(pool_->NextRollouts(kPatience).ok());
  EXPECT_EQ(Answer(), 1U);
  actor.ReadChoices();
}

TEST_F(ActorPoolTurnsTest, OpponentsAreAskedButMakeNoUnrollsAndNoEpisodes) {
  Open(/*opponents=*/true);
  TurnsActor actor(pool_->address());
  ASSERT_TRUE(actor.Enter());  // the first stream: agent 1 learns
  actor.SendRows({Kind::kFirst, Kind::kAbsent});
  Answer(7);
  EXPECT_EQ(opponents_, (std::vector<bool>{true}));
  actor.ReadChoices();
  actor.SendRows({Kind::kWaiting, Kind::kFirst});
  Answer(7);
  EXPECT_EQ(opponents_, (std::vector<bool>{false}));
  actor.ReadChoices();
  actor.SendRows({Kind::kTerminated, Kind::kTerminated}, {-1, 1});
  Answer(7);
  actor.ReadChoices();
  const auto episodes = pool_->TakeEpisodes();
  ASSERT_EQ(episodes.size(), 1U);
  EXPECT_EQ(episodes[0].episode_return, 1);
  EXPECT_EQ(episodes[0].opponents, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(Stat(*pool_, "steps_sampled"), 1);
  EXPECT_EQ(Stat(*pool_, "opponent_steps"), 1);
  EXPECT_TRUE(BooksBalance(*pool_));
}

TEST_F(ActorPoolTurnsTest, TheLearningAgentChangesFromStreamToStream) {
  Open(/*opponents=*/true);
  for (const bool first_is_opponent : {true, false}) {
    TurnsActor actor(pool_->address(), /*takes_turns=*/false);
    ASSERT_TRUE(actor.Enter());
    actor.SendRows({Kind::kFirst, Kind::kFirst});
    Answer(3);
    EXPECT_EQ(opponents_, (std::vector<bool>{first_is_opponent, !first_is_opponent}));
    actor.ReadChoices();
    actor.Finish();
  }
}

TEST_F(ActorPoolTurnsTest, ALearnerWithOpponentsRefusesEnvironmentsOfOneAgent) {
  Open(/*opponents=*/true);
  TestActor actor(pool_->address(), 2);
  EXPECT_FALSE(actor.Join());
  const grpc::Status status = actor.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("hello.num_agents: 1"), std::string::npos);
}

TEST_F(ActorPoolTurnsTest, APoolWithoutRolloutsRefusesTurns) {
  StartOpenPool([](PoolOptions& options) { options.unroll_length = 0; });
  TurnsActor actor(pool_->address());
  EXPECT_FALSE(actor.Enter());
  EXPECT_EQ(actor.Status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace kubebeast
