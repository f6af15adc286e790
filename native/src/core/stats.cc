#include "stats.h"

namespace kubebeast {
namespace {

struct Entry {
  std::string_view name;
  Stats::Value Stats::* value;
};

constexpr Entry kEntries[] = {
    {"streams", &Stats::streams},
    {"envs", &Stats::envs},
    {"steps_in_flight", &Stats::steps_in_flight},
    {"streams_accepted", &Stats::streams_accepted},
    {"streams_ended_bye", &Stats::streams_ended_bye},
    {"streams_ended_disconnect", &Stats::streams_ended_disconnect},
    {"streams_ended_invalid", &Stats::streams_ended_invalid},
    {"streams_ended_timeout", &Stats::streams_ended_timeout},
    {"streams_rejected", &Stats::streams_rejected},
    {"messages_received", &Stats::messages_received},
    {"bytes_received", &Stats::bytes_received},
    {"bytes_sent", &Stats::bytes_sent},
    {"rows_received", &Stats::rows_received},
    {"steps_sampled", &Stats::steps_sampled},
    {"steps_delivered", &Stats::steps_delivered},
    {"steps_dropped_partial", &Stats::steps_dropped_partial},
    {"steps_dropped_close", &Stats::steps_dropped_close},
    {"rollouts_completed", &Stats::rollouts_completed},
    {"rollouts_partial", &Stats::rollouts_partial},
    {"inference_batches", &Stats::inference_batches},
    {"inference_rows", &Stats::inference_rows},
    {"inference_flush_ready", &Stats::inference_flush_ready},
    {"inference_flush_all", &Stats::inference_flush_all},
    {"inference_flush_timeout", &Stats::inference_flush_timeout},
    {"inference_dropped", &Stats::inference_dropped},
    {"episodes", &Stats::episodes},
};

}  // namespace

std::vector<std::pair<std::string_view, std::int64_t>> Stats::Snapshot() const {
  std::vector<std::pair<std::string_view, std::int64_t>> values;
  for (const Entry& entry : kEntries) values.emplace_back(entry.name, (this->*entry.value).load());
  return values;
}

}  // namespace kubebeast
