#include "options/stream_options.h"

#include <utility>

namespace kubebeast {

std::vector<EpisodeOptions> StreamOptions::Begin() {
  std::vector<EpisodeOptions> sent;
  for (std::uint32_t env = 0; env < texts_.size(); ++env) {
    texts_[env] = queue_.Take();
    if (texts_[env] == nullptr) {
      texts_[env] = queue_.newest();
      ++stats_.options_repeated;
    }
    if (texts_[env] != nullptr) sent.push_back({env, texts_[env]});
  }
  stats_.options_sent += static_cast<std::int64_t>(sent.size());
  return sent;
}

const std::string& StreamOptions::of(std::uint32_t env) const {
  static const std::string none;
  return texts_[env] == nullptr ? none : *texts_[env];
}

void StreamOptions::Note(const ObservationRows& rows) {
  due_.clear();
  for (std::uint32_t env = 0; env < rows.num_envs(); ++env) {
    const bool is_final = rows.terminated[env] != 0 || rows.truncated[env] != 0;
    if (is_final && rows.is_first[env] == 0) due_.push_back(env);  // an absent row ends no episode
  }
}

std::vector<EpisodeOptions> StreamOptions::Next() {
  std::vector<EpisodeOptions> sent;
  for (const std::uint32_t env : due_) {
    OptionsText text = queue_.Take();
    if (text == nullptr) {
      ++stats_.options_repeated;
      continue;
    }
    texts_[env] = text;
    sent.push_back({env, std::move(text)});
  }
  due_.clear();
  stats_.options_sent += static_cast<std::int64_t>(sent.size());
  return sent;
}

}  // namespace kubebeast
