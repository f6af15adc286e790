#include "stats/stats.h"

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
    {"streams_ended_dropped", &Stats::streams_ended_dropped},
    {"streams_ended_closed", &Stats::streams_ended_closed},
    {"streams_rejected", &Stats::streams_rejected},
    {"streams_unauthenticated", &Stats::streams_unauthenticated},
    {"dials_failed", &Stats::dials_failed},
    {"connections_blocked", &Stats::connections_blocked},
    {"connections_closed", &Stats::connections_closed},
    {"connections_silent", &Stats::connections_silent},
    {"connections_plaintext", &Stats::connections_plaintext},
    {"connections_tls", &Stats::connections_tls},
    {"connections_garbage", &Stats::connections_garbage},
    {"connections_no_call", &Stats::connections_no_call},
    {"messages_received", &Stats::messages_received},
    {"bytes_received", &Stats::bytes_received},
    {"bytes_sent", &Stats::bytes_sent},
    {"rows_received", &Stats::rows_received},
    {"env_interruptions", &Stats::env_interruptions},
    {"steps_sampled", &Stats::steps_sampled},
    {"steps_delivered", &Stats::steps_delivered},
    {"steps_dropped_partial", &Stats::steps_dropped_partial},
    {"steps_dropped_stale", &Stats::steps_dropped_stale},
    {"steps_dropped_close", &Stats::steps_dropped_close},
    {"rollouts_completed", &Stats::rollouts_completed},
    {"rollouts_partial", &Stats::rollouts_partial},
    {"rollouts_dropped_partial", &Stats::rollouts_dropped_partial},
    {"rollouts_dropped_stale", &Stats::rollouts_dropped_stale},
    {"rollouts_delivered", &Stats::rollouts_delivered},
    {"rollout_padded_steps", &Stats::rollout_padded_steps},
    {"inference_batches", &Stats::inference_batches},
    {"inference_rows", &Stats::inference_rows},
    {"inference_flush_ready", &Stats::inference_flush_ready},
    {"inference_flush_all", &Stats::inference_flush_all},
    {"inference_flush_timeout", &Stats::inference_flush_timeout},
    {"inference_dropped", &Stats::inference_dropped},
    {"episodes", &Stats::episodes},
};

struct HistogramEntry {
  std::string_view name;
  Histogram Histograms::* histogram;
};

constexpr HistogramEntry kHistograms[] = {
    {"rollout_queue_wait", &Histograms::rollout_queue_wait},
    {"stream_parked", &Histograms::stream_parked},
    {"stream_env", &Histograms::stream_env},
    {"stream_action", &Histograms::stream_action},
    {"inference_batch_rows", &Histograms::inference_batch_rows},
    {"inference_queue_wait", &Histograms::inference_queue_wait},
    {"inference_gather", &Histograms::inference_gather},
    {"inference_model", &Histograms::inference_model},
    {"inference_reply", &Histograms::inference_reply},
};

}  // namespace

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
  for (const Entry& entry : kEntries) values.emplace_back(entry.name, (this->*entry.value).load());
  return values;
}

std::vector<std::pair<std::string_view, Histogram::Snapshot>> Stats::TakeHistograms() const {
  std::vector<std::pair<std::string_view, Histogram::Snapshot>> taken;
  for (const HistogramEntry& entry : kHistograms) taken.emplace_back(entry.name, (histograms.*entry.histogram).Take());
  return taken;
}

}  // namespace kubebeast
