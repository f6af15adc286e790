// Texts that a learner sends: Welcome.log_info, and the options of episodes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kubebeast {

// JSON object with the options of an episode, shared by all that hold it.
using OptionsText = std::shared_ptr<const std::string>;

// kubebeast.v1.EpisodeOptions.
struct EpisodeOptions {
  std::uint32_t env = 0;
  OptionsText options;
};

// Returns InvalidArgument with the first entry that a Welcome must not hold in log_info.
absl::Status ValidateLogInfo(const std::vector<std::string>& log_info);

// Returns InvalidArgument if EpisodeOptions must not hold this text, as far as its characters show: JSON is parsed by
// those that read it.
absl::Status ValidateOptions(absl::string_view text);

}  // namespace kubebeast
