// The tasks of a run: environments of equal specs that share one learner.
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
  double weight = 1;  // of its share in the training batches
};

// InvalidArgument for an env_id that is empty or there twice, and for a weight that is no positive number.
absl::Status ValidateTasks(const std::vector<TaskShare>& shares);

// Counts tasks from 0, in the order of their shares. Immutable.
class Tasks {
 public:
  // shares: valid; empty: every env_id is task 0.
  explicit Tasks(std::vector<TaskShare> shares) : shares_(std::move(shares)) {}

  // The task of env-servers that play `env_id`. FailedPrecondition, with the tasks there are, where it is none.
  absl::StatusOr<std::size_t> Find(const std::string& env_id) const;

  // One a task.
  std::vector<double> weights() const;

 private:
  const std::vector<TaskShare> shares_;
};

}  // namespace kubebeast
