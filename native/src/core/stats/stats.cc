#include "stats/stats.h"

namespace kubebeast {
void Stats::CountSampled(std::size_t steps) {
  const MutexLock lock(books_mutex_);
  steps_sampled += static_cast<std::int64_t>(steps);
  steps_in_flight += static_cast<std::int64_t>(steps);
}

void Stats::CountLeaving(std::size_t steps, Value& where) {
  const MutexLock lock(books_mutex_);
  where += static_cast<std::int64_t>(steps);
  steps_in_flight -= static_cast<std::int64_t>(steps);
}

std::vector<std::pair<std::string_view, std::int64_t>> Stats::Snapshot() const {
  const MutexLock lock(books_mutex_);
  std::vector<std::pair<std::string_view, std::int64_t>> values;
  values.reserve(values_.size());
  for (const auto& [name, value] : values_) values.emplace_back(name, value->load());
  return values;
}

std::vector<std::pair<std::string_view, Histogram::Snapshot>> Stats::TakeHistograms() const {
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> taken;
  taken.reserve(histograms.names.size());
  for (const auto& [name, histogram] : histograms.names) taken.emplace_back(name, histogram->Take());
  return taken;
}

}  // namespace kubebeast
