// Catch in C++, played by a learner: `catch ADDRESS [NUM_ENVS]` until SIGTERM
// or SIGINT.
//
// A ball falls through a 10 x 5 board and a paddle must be below it: the game
// of services/envserver/kubebeast_envserver/catch.py, so that both can train on
// the same learner.
#include <kubebeast/client.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace client = kubebeast::client;

namespace {

constexpr int kRows = 10;
constexpr int kColumns = 5;

using Board = std::array<float, kRows * kColumns>;

// Actions: 0 left, 1 stay, 2 right. An episode takes 9 decisions; the last
// reward is 1 for a catch, else -1.
class Catch {
 public:
  // options: those of the episode, such as {"column": 2}, the column in which
  // the ball falls; without it, any.
  void Reset(const std::string& options) {
    ball_row_ = 0;
    ball_column_ = std::uniform_int_distribution<int>(0, kColumns - 1)(random_);
    constexpr std::string_view kKey = "\"column\":";
    if (const auto found = options.find(kKey); found != std::string::npos) {
      ball_column_ = std::clamp(std::atoi(options.c_str() + found + kKey.size()), 0, kColumns - 1);
    }
    paddle_ = kColumns / 2;
  }

  // The reward.
  float Step(std::int64_t action) {
    paddle_ = std::clamp(paddle_ + static_cast<int>(action) - 1, 0, kColumns - 1);
    ++ball_row_;
    if (!landed()) return 0;
    return ball_column_ == paddle_ ? 1 : -1;
  }

  bool landed() const { return ball_row_ == kRows - 1; }

  Board board() const {
    Board board{};
    board[ball_row_ * kColumns + ball_column_] = 1;
    board[(kRows - 1) * kColumns + paddle_] = 1;
    return board;
  }

 private:
  std::mt19937 random_{std::random_device{}()};
  int ball_row_ = 0;
  int ball_column_ = 0;
  int paddle_ = kColumns / 2;
};

// One environment of the stream and its game, which alternate: a row, its
// reply, the next row.
struct Player {
  client::Environment env;
  Catch game{};
  bool over = true;

  client::PendingReply Play(const client::Reply& last) {
    if (over || last.lost()) {
      game.Reset(env.NextOptions());
      over = false;
      return env.Start(game.board());
    }
    const float reward = game.Step(last.action.value<std::int64_t>());
    over = game.landed();
    if (over) {
      env.SetInfo("caught", reward > 0 ? 1 : 0);
      return env.End(game.board(), reward, client::Ending::kTerminated);
    }
    return env.Observe(game.board(), reward);
  }
};

volatile std::sig_atomic_t stopped = 0;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: catch ADDRESS [NUM_ENVS]\n";
    return 2;
  }
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stopped = 1; });
  const auto num_envs = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 1);
  client::Stream stream({
      .address = argv[1],
      .env_id = "Catch-v0",
      .num_envs = num_envs,
      .observation = {{.dtype = client::DType::kFloat32, .shape = {kRows, kColumns}}},
      .action = {{.dtype = client::DType::kInt64, .num_categories = 3}},
      .log = [](std::string_view line) { std::cerr << line << std::endl; },
  });
  std::vector<Player> players;
  for (std::uint32_t i = 0; i < num_envs; ++i) players.push_back({stream.environment(i)});
  std::vector<client::Reply> replies(num_envs);
  while (stopped == 0 && stream.status().ok()) {
    std::vector<client::PendingReply> pending;
    for (std::uint32_t i = 0; i < num_envs; ++i) pending.push_back(players[i].Play(replies[i]));
    for (std::uint32_t i = 0; i < num_envs; ++i) {
      do {
        replies[i] = pending[i].Wait(std::chrono::milliseconds(100));
      } while (replies[i].pending() && stopped == 0);
    }
  }
  if (const client::Status status = stream.status(); !status.ok()) {
    std::cerr << client::CodeName(status.code) << ": " << status.message << '\n';
    return 3;
  }
  stream.Close();
  return 0;
}
