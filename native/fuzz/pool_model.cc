#include "pool_model.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "script.h"

namespace kubebeast::fuzz {
namespace {

// The corpus has more inputs than this; a run of the target on a single input skips the check.
constexpr std::int64_t kWholeCorpus = 100;
constexpr const char* kMustBeReached[] = {"streams_accepted",      "streams_rejected",
                                          "streams_ended_bye",     "streams_ended_disconnect",
                                          "streams_ended_invalid", "streams_ended_timeout",
                                          "streams_ended_dropped", "streams_ended_closed",
                                          "env_interruptions",     "episodes",
                                          "steps_delivered",       "steps_dropped_partial",
                                          "steps_dropped_stale",   "steps_dropped_close",
                                          "rollouts_completed",    "rollouts_partial",
                                          "inference_dropped",     "streams_parked",
                                          "streams_in_reserve"};

std::int64_t num_runs = 0;
std::int64_t num_parked = 0;
std::int64_t num_in_reserve = 0;
std::map<std::string_view, std::int64_t> reached;

}  // namespace

void CheckPool(const PoolContext& pool, std::size_t num_streams, std::size_t num_envs) {
  const Stats& stats = *pool.stats;
  Require(stats.streams == static_cast<std::int64_t>(num_streams), "the gauge streams counts live streams");
  Require(stats.envs == static_cast<std::int64_t>(num_envs), "the gauge envs counts their environments");
  Require(stats.streams_accepted == stats.streams + stats.streams_ended_bye + stats.streams_ended_disconnect +
                                        stats.streams_ended_invalid + stats.streams_ended_timeout +
                                        stats.streams_ended_dropped + stats.streams_ended_closed,
          "every accepted stream is live or has one end");
  Require(stats.steps_in_flight >= 0, "no step leaves twice");
  Require(stats.steps_sampled == stats.steps_delivered + stats.steps_dropped_partial + stats.steps_dropped_stale +
                                     stats.steps_dropped_close + stats.steps_in_flight,
          "the books balance");
  Require(pool.batcher.rows_waiting() <= num_envs, "only live environments wait for actions");
  Require(pool.rollouts.num_parked() <= num_streams, "only live streams are parked");
  Require(pool.rollouts.size() + pool.rollouts.num_running() < pool.options.max_queued_rollouts + pool.options.max_envs,
          "beyond its capacity the queue takes the rollouts of one stream");
  Require(stats.streams_in_reserve >= 0, "no stream leaves the reserve twice");
  Require(pool.options.keep_surplus || stats.streams_in_reserve == 0,
          "where no surplus is kept nobody waits for a place");
  num_parked += static_cast<std::int64_t>(pool.rollouts.num_parked());
  num_in_reserve += stats.streams_in_reserve;
}

void CheckEmptyPool(PoolContext& pool) {
  CheckPool(pool, 0, 0);
  Require(pool.stats->steps_in_flight == 0, "no step is in flight");
  Require(pool.stats->streams_in_reserve == 0, "nobody is left in the reserve");
  Require(pool.rollouts.size() == 0, "no rollout is queued");
  Require(pool.rollouts.num_running() == 0, "streams that are gone take no place");
  Require(pool.registry.streams().empty(), "no stream is listed");
  for (const StreamEvent& event : pool.events.Take()) {
    for (const std::string& text :
         {event.env_server_id, event.instance_id, event.env_id, event.reason, event.detail, event.env_config}) {
      Require(std::none_of(text.begin(), text.end(), absl::ascii_iscntrl), "a peer cannot begin a line in the log");
    }
  }
  ++num_runs;
  for (const auto& [name, value] : pool.stats->Snapshot()) reached[name] += value;
}

void CheckReached() {
  if (num_runs < kWholeCorpus) return;
  reached["streams_parked"] = num_parked;
  reached["streams_in_reserve"] = num_in_reserve;
  bool all = true;
  for (const char* const name : kMustBeReached) {
    if (reached[name] > 0) continue;
    all = false;
    std::fprintf(stderr, "never reached: %s\n", name);
  }
  if (!all) std::_Exit(EXIT_FAILURE);
}

}  // namespace kubebeast::fuzz
