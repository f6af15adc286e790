#include "lockstep.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensors/leaf_values.h"

namespace kubebeast::client {
namespace {

constexpr std::uint32_t kInterruptedMinor = 1;
constexpr std::uint32_t kAbsentMinor = 4;

template <typename... Parts>
Status Misuse(const Parts&... parts) {
  return {Code::kMisuse, absl::StrCat(parts...)};
}

bool OpensEpisode(Row row) { return row == Row::kFirst || row == Row::kAbsent; }
bool IsFinal(Row row) { return row == Row::kTerminated || row == Row::kTruncated || row == Row::kBoth; }
bool KeepsPlace(Row row) { return row == Row::kInterrupted || row == Row::kAbsent; }

// Returns false if the program has taken other options than these.
bool Agree(const std::optional<OptionsText>& taken, const OptionsText& options) {
  if (!taken.has_value() || *taken == options) return true;
  return *taken != nullptr && options != nullptr && **taken == *options;
}

bool SameType(kubebeast::DType wanted, DType given) {
  return static_cast<int>(wanted) == static_cast<int>(given) ||
         (wanted == kubebeast::DType::kBool && given == DType::kUint8);
}

}  // namespace

Lockstep::Lockstep(std::vector<kubebeast::LeafSpec> leaves, std::uint32_t num_envs, bool count_episodes)
    : leaves_(std::move(leaves)), count_episodes_(count_episodes), envs_(num_envs) {
  for (const kubebeast::LeafSpec& leaf : leaves_) rows_.frames.emplace_back(num_envs * leaf.frame_bytes());
  rows_.rewards.resize(num_envs);
  for (auto* flags : {&rows_.terminated, &rows_.truncated, &rows_.is_first, &rows_.interrupted}) {
    flags->resize(num_envs);
  }
}

Status Lockstep::Post(std::uint32_t env, Row row, std::span<const Frame> frames, float reward) {
  if (env >= envs_.size()) return Misuse("environment ", env, ": there are ", envs_.size());
  if (Status status = CheckRow(envs_[env], row, reward); !status.ok()) return status;
  if (!KeepsPlace(row)) {
    if (Status status = CheckFrames(frames); !status.ok()) return status;
  }
  if (row == Row::kFirst && !Agree(envs_[env].taken, envs_[env].options)) {
    Outdate(envs_[env]);
    DropStep();
    return {Code::kLost, kOutdated};
  }
  Store(env, row, frames, reward);
  Count(env, row, reward);
  if (row == Row::kFirst) envs_[env].begun_with = std::exchange(envs_[env].taken, std::nullopt);
  envs_[env].is_outdated = false;
  envs_[env].row = row;
  envs_[env].place = Place::kPosted;
  envs_[env].life = row == Row::kFirst || row == Row::kInner ? Life::kUnderWay : Life::kDue;
  ++num_posted_;
  return {};
}

Status Lockstep::CheckRow(const Env& env, Row row, float reward) const {
  if (env.life == Life::kLost && !OpensEpisode(row)) {
    return {Code::kLost,
            env.is_outdated ? kOutdated : "the connection broke, which ended the episode: the next row is a Start"};
  }
  if (env.place == Place::kPosted || env.place == Place::kSent) {
    return {Code::kPending, "the row before is not answered: this one is not taken"};
  }
  if (OpensEpisode(row) && env.life == Life::kUnderWay) {
    return Misuse("an episode is under way: it is to End, or to Interrupt");
  }
  if (!OpensEpisode(row) && env.life == Life::kDue) return Misuse("no episode is under way: the next row is a Start");
  if (!std::isfinite(reward)) return Misuse("the reward is ", reward, ", which is not finite");
  return {};
}

Status Lockstep::CheckFrames(std::span<const Frame> frames) const {
  if (frames.size() != leaves_.size()) {
    return Misuse("the observation has ", frames.size(), " leaves, expected ", leaves_.size());
  }
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const kubebeast::LeafSpec& leaf = leaves_[i];
    if (frames[i].size() != leaf.frame_bytes()) {
      return Misuse("observation leaf ", i, " (", leaf.ToString(), ") has ", frames[i].size(), " bytes, expected ",
                    leaf.frame_bytes());
    }
    const std::optional<DType> given = frames[i].dtype();
    if (given.has_value() && !SameType(leaf.dtype, *given)) {
      return Misuse("observation leaf ", i, " (", leaf.ToString(), ") is given as ",
                    DTypeName(static_cast<kubebeast::DType>(*given)));
    }
    const auto* data = static_cast<const std::uint8_t*>(frames[i].data());
    if (const absl::Status status = CheckValues(leaf, data, frames[i].size()); !status.ok()) {
      return Misuse("observation leaf ", i, " (", leaf.ToString(), "): ", status.message());
    }
  }
  return {};
}

void Lockstep::Store(std::uint32_t env, Row row, std::span<const Frame> frames, float reward) {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const std::size_t bytes = leaves_[i].frame_bytes();
    if (bytes == 0) continue;
    std::uint8_t* const to = rows_.frames[i].data() + env * bytes;
    if (KeepsPlace(row)) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to, frames[i].data(), bytes);
    }
  }
  rows_.rewards[env] = reward;
  rows_.terminated[env] = row == Row::kTerminated || row == Row::kBoth;
  rows_.truncated[env] = row == Row::kTruncated || row == Row::kBoth || KeepsPlace(row);
  rows_.is_first[env] = OpensEpisode(row);
  rows_.interrupted[env] = KeepsPlace(row);
}

void Lockstep::Count(std::uint32_t index, Row row, float reward) {
  Env& env = envs_[index];
  if (OpensEpisode(row) || row == Row::kInterrupted) {
    env.episode_return = 0;
    env.length = 0;
    if (count_episodes_) env.info.clear();
    return;
  }
  env.episode_return += reward;
  ++env.length;
  if (!count_episodes_ || !IsFinal(row)) return;
  env.finished = Episode{index, env.episode_return, env.length, std::exchange(env.info, {})};
}

Status Lockstep::Report(std::uint32_t env, double episode_return, std::uint64_t length) {
  if (env >= envs_.size()) return Misuse("environment ", env, ": there are ", envs_.size());
  if (count_episodes_) return Misuse("episodes are counted: Options::count_episodes is on");
  if (!std::isfinite(episode_return)) return Misuse("the return is ", episode_return, ", which is not finite");
  envs_[env].finished = Episode{env, episode_return, length, std::exchange(envs_[env].info, {})};
  return {};
}

Status Lockstep::SetInfo(std::uint32_t env, std::string_view key, double value) {
  if (env >= envs_.size()) return Misuse("environment ", env, ": there are ", envs_.size());
  Env& state = envs_[env];
  std::string name(key);
  if (!std::isfinite(value)) return Misuse("info ", name, " is ", value, ", which is not finite");
  if (count_episodes_ && state.life == Life::kLost)
    return {Code::kLost, "the connection broke, which ended the episode"};
  if (count_episodes_ && state.life == Life::kDue) return Misuse("info ", name, ": no episode is under way");
  state.info.insert_or_assign(std::move(name), value);
  return {};
}

void Lockstep::SetOptions(const std::vector<EpisodeOptions>& entries) {
  for (const EpisodeOptions& entry : entries) {
    envs_[entry.env].options = entry.options;
    envs_[entry.env].taken = std::nullopt;
  }
}

void Lockstep::BeginOptions(const std::vector<EpisodeOptions>& entries) {
  for (const EpisodeOptions& entry : entries) envs_[entry.env].options = entry.options;
  const bool is_outdated = std::any_of(envs_.begin(), envs_.end(), [](const Env& env) {
    return env.place == Place::kPosted && env.row == Row::kFirst && !Agree(env.begun_with, env.options);
  });
  if (is_outdated) DropStep();
}

void Lockstep::Outdate(Env& env) {
  env.life = Life::kLost;
  env.place = Place::kNone;
  env.taken = std::nullopt;
  env.is_outdated = true;
}

// Loses the rows that begin a stream's first episodes, before they are sent.
void Lockstep::DropStep() {
  for (Env& env : envs_) {
    if (env.place != Place::kPosted || !OpensEpisode(env.row)) continue;
    Outdate(env);
    --num_posted_;
  }
}

std::string Lockstep::TakeOptions(std::uint32_t env) {
  if (env >= envs_.size()) return "";
  envs_[env].taken = envs_[env].options;
  return envs_[env].options == nullptr ? "" : *envs_[env].options;
}

bool Lockstep::ignores_options() const {
  return std::any_of(envs_.begin(), envs_.end(), [](const Env& env) {
    return env.place == Place::kPosted && env.row == Row::kFirst && env.options != nullptr &&
           !env.begun_with.has_value();
  });
}

const StepRows& Lockstep::rows() {
  rows_.episodes.clear();
  for (const Env& env : envs_) {
    if (env.finished.has_value()) rows_.episodes.push_back(*env.finished);
  }
  return rows_;
}

std::uint32_t Lockstep::minor() const {
  std::uint32_t minor = 0;
  for (const Env& env : envs_) {
    if (env.row == Row::kAbsent) minor = std::max(minor, kAbsentMinor);
    if (env.row == Row::kInterrupted) minor = std::max(minor, kInterruptedMinor);
  }
  return minor;
}

void Lockstep::MarkSent() {
  num_posted_ = 0;
  for (Env& env : envs_) {
    env.place = Place::kSent;
    env.finished.reset();
  }
}

void Lockstep::MarkAnswered() {
  for (Env& env : envs_) {
    if (env.place == Place::kSent) env.place = Place::kAnswered;
  }
}

void Lockstep::MarkLost() {
  for (Env& env : envs_) {
    env.options = nullptr;
    const bool is_posted = env.place == Place::kPosted;
    if (is_posted && OpensEpisode(env.row)) continue;
    if (is_posted) {
      --num_posted_;
      if (count_episodes_) env.finished.reset();
    }
    if (is_posted || env.place == Place::kSent || env.life == Life::kUnderWay) {
      env.life = Life::kLost;
      env.place = Place::kNone;
      env.is_outdated = false;
    }
  }
}

Code Lockstep::reply(std::uint32_t env) const {
  if (env >= envs_.size()) return Code::kMisuse;
  const Env& state = envs_[env];
  if (state.place == Place::kPosted || state.place == Place::kSent) return Code::kPending;
  if (state.life == Life::kLost) return Code::kLost;
  return state.place == Place::kAnswered ? Code::kOk : Code::kMisuse;
}

bool Lockstep::acts(std::uint32_t env) const { return envs_[env].row == Row::kFirst || envs_[env].row == Row::kInner; }

}  // namespace kubebeast::client
