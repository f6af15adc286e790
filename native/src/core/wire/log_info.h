// Keys of the numbers that a learner logs of each episode: Welcome.log_info.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kubebeast {

// Returns InvalidArgument with the first entry that a Welcome must not hold in log_info.
absl::Status ValidateLogInfo(const std::vector<std::string>& log_info);

}  // namespace kubebeast
