// Options of the episodes of one stream's environments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/options_queue.h"
#include "stats/stats.h"
#include "wire/learner_texts.h"
#include "wire/observation_rows.h"

namespace kubebeast {

// The newest options of each environment, which hold for all of its resets until others are sent. If the queue is
// empty, an environment keeps its own: an episode never waits for the curriculum. Not thread-safe.
class StreamOptions {
 public:
  // queue and stats must outlive it.
  StreamOptions(OptionsQueue& queue, Stats& stats, std::uint32_t num_envs)
      : queue_(queue), stats_(stats), texts_(num_envs) {}

  // Returns the options of the first episodes, for the Welcome: of every environment if the queue ever had any.
  std::vector<EpisodeOptions> Begin();

  // Returns the options of the environment's newest episode; "" without any. It has ended if these rows end it, as long
  // as Next was not called for them.
  const std::string& of(std::uint32_t env) const;

  // Records the environments that the next step resets, according to their newest rows.
  void Note(const ObservationRows& rows);

  // Returns further options for the recorded environments, for the Actions that answer their rows.
  std::vector<EpisodeOptions> Next();

 private:
  OptionsQueue& queue_;
  Stats& stats_;
  std::vector<OptionsText> texts_;  // null before the first ones
  std::vector<std::uint32_t> due_;
};

}  // namespace kubebeast
