// Lock-step of a stream's environments: the rows that each may give next, and the step that is being assembled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubebeast/client.h"
#include "tensors/tensor_spec.h"
#include "wire/learner_texts.h"

namespace kubebeast::client {

// Rows of the contract's table (protos/kubebeast_protos/v1/actor_pool.proto).
enum class Row : std::uint8_t { kFirst, kInner, kTerminated, kTruncated, kBoth, kInterrupted, kAbsent };

// Reason for the loss of rows that begin episodes.
inline constexpr char kOutdated[] =
    "the learner has chosen other options of the first episodes: call NextOptions again, reset, and Start";

// Numbers of an episode for the learner's log, by key.
using Info = std::map<std::string, double, std::less<>>;

// A finished game.
struct Episode {
  std::uint32_t env = 0;
  double episode_return = 0;
  std::uint64_t length = 0;
  Info info;
};

// One vector step; row i belongs to environment i in every field.
struct StepRows {
  std::vector<std::vector<std::uint8_t>> frames;  // per leaf: [num_envs, frame], the newest ones
  std::vector<float> rewards;
  std::vector<std::uint8_t> terminated;
  std::vector<std::uint8_t> truncated;
  std::vector<std::uint8_t> is_first;
  std::vector<std::uint8_t> interrupted;
  std::vector<Episode> episodes;
};

// State machine that keeps the contract under any calls of the program. Rows and replies alternate. Not thread-safe.
class Lockstep {
 public:
  // leaves: of the observation, valid ones.
  Lockstep(std::vector<kubebeast::LeafSpec> leaves, std::uint32_t num_envs, bool count_episodes);

  // Takes a row of an environment. frames: of every leaf, or none if the row only keeps a place. If not ok, nothing has
  // changed.
  Status Post(std::uint32_t env, Row row, std::span<const Frame> frames, float reward);
  // Sets an episode to report with the next row of the environment.
  Status Report(std::uint32_t env, double episode_return, std::uint64_t length);
  // Sets a number of the running episode, or of the next one that is reported.
  Status SetInfo(std::uint32_t env, std::string_view key, double value);

  // Takes the options of the next episodes of these environments, which exist. Those that the program has taken before
  // count no more.
  void SetOptions(const std::vector<EpisodeOptions>& entries);
  // Takes the options of the first episodes of a new stream. If the program has begun one of them with other options,
  // all rows of the step are lost: a program that waits for its environments in turn then gives them all again.
  void BeginOptions(const std::vector<EpisodeOptions>& entries);
  // Returns the options of the environment's next episode for its next first row; "" without any.
  std::string TakeOptions(std::uint32_t env);
  // Returns true if a row begins an episode with options that the program has not taken: it plays another level.
  bool ignores_options() const;

  // Returns true if each environment has given its row, and the step is not sent yet.
  bool complete() const { return num_posted_ == envs_.size(); }
  // Returns the rows, if complete; valid until the next Post.
  const StepRows& rows();
  // Returns the lowest minor version of a learner that knows these rows.
  std::uint32_t minor() const;
  // Records that the rows are under way.
  void MarkSent();
  // Records the learner's reply to the sent step.
  void MarkAnswered();
  // Records the loss of the stream: episodes are over, and there are no options. Rows that may as well be the first
  // ones of another stream stay.
  void MarkLost();

  // Returns kOk: replied to; kPending; kLost: over, by MarkLost or with outdated options; kMisuse: there was no row.
  Code reply(std::uint32_t env) const;
  // Returns true if the environment is lost because of its options.
  bool is_outdated(std::uint32_t env) const { return envs_[env].is_outdated; }
  // Returns true if the environment's next row depends on the action of the reply.
  bool acts(std::uint32_t env) const;
  std::size_t num_envs() const { return envs_.size(); }

 private:
  enum class Life : std::uint8_t { kDue, kUnderWay, kLost };
  enum class Place : std::uint8_t { kNone, kPosted, kSent, kAnswered };
  struct Env {
    Life life = Life::kDue;
    Place place = Place::kNone;
    Row row = Row::kFirst;  // the last one
    double episode_return = 0;
    std::uint64_t length = 0;
    Info info;
    std::optional<Episode> finished;
    OptionsText options;                    // null without any
    std::optional<OptionsText> taken;       // options that the program has taken since the last first row
    std::optional<OptionsText> begun_with;  // those taken before the last first row
    bool is_outdated = false;               // lost, as an environment of the step has begun with other options
  };

  static void Outdate(Env& env);
  void DropStep();
  Status CheckRow(const Env& env, Row row, float reward) const;
  Status CheckFrames(std::span<const Frame> frames) const;
  void Store(std::uint32_t env, Row row, std::span<const Frame> frames, float reward);
  void Count(std::uint32_t index, Row row, float reward);

  const std::vector<kubebeast::LeafSpec> leaves_;
  const bool count_episodes_;
  std::vector<Env> envs_;
  std::size_t num_posted_ = 0;
  StepRows rows_;
};

}  // namespace kubebeast::client
