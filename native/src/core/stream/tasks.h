// Tasks of a run: environments of equal specs that share one learner.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kubebeast {

struct TaskShare {
  std::string env_id;
  double weight = 1;  // relative share in the training batches
};

// Returns InvalidArgument for an empty or repeated env_id, and for a weight that is not a positive number.
absl::Status ValidateTasks(const std::vector<TaskShare>& shares);

// Numbers of the tasks, from 0, in the order of their shares. Immutable.
class Tasks {
 public:
  // shares: valid; if empty, every env_id is task 0.
  explicit Tasks(std::vector<TaskShare> shares) : shares_(std::move(shares)) {}

  // Returns the task of env-servers that play `env_id`, in any notation, or FailedPrecondition, with a list of the
  // tasks, if it is none.
  absl::StatusOr<std::size_t> Find(const std::string& env_id) const;

  // Returns one weight per task.
  std::vector<double> weights() const;

 private:
  const std::vector<TaskShare> shares_;
};

}  // namespace kubebeast
