#include "stream/tasks.h"

#include <cmath>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "wire/env_id.h"

namespace kubebeast {

absl::Status ValidateTasks(const std::vector<TaskShare>& shares) {
  std::set<std::string_view> env_ids;
  for (const auto& [env_id, weight] : shares) {
    if (env_id.empty()) return absl::InvalidArgumentError("task_shares: a task has no env_id");
    if (!env_ids.insert(env_id).second) {
      return absl::InvalidArgumentError(absl::StrCat("task_shares: ", env_id, " is there twice"));
    }
    if (!std::isfinite(weight) || weight <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("task_shares: the weight of ", env_id, " is ", weight, ": must be a positive number"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> Tasks::Find(const std::string& env_id) const {
  if (shares_.empty()) return 0;
  for (std::size_t task = 0; task < shares_.size(); ++task) {
    if (shares_[task].env_id == env_id) return task;
  }
  for (std::size_t task = 0; task < shares_.size(); ++task) {
    if (PlainEnvId(shares_[task].env_id) == PlainEnvId(env_id)) return task;
  }
  const auto name = [](std::string* out, const TaskShare& share) { out->append(share.env_id); };
  return absl::FailedPreconditionError(absl::StrCat(
      "env_id ", env_id, " is no task of the run, whose task_shares are of ", absl::StrJoin(shares_, ", ", name)));
}

std::vector<double> Tasks::weights() const {
  std::vector<double> weights;
  weights.reserve(shares_.size());
  for (const TaskShare& share : shares_) weights.push_back(share.weight);
  return weights.empty() ? std::vector<double>{1.0} : weights;
}

}  // namespace kubebeast
