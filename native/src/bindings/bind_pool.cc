#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings.h"
#include "errors.h"
#include "pool/actor_pool.h"

namespace kubebeast {
namespace {

namespace py = pybind11;

// Deleter that releases the GIL, as the pool waits for transport threads.
struct DeleteWithoutGil {
  void operator()(ActorPool* pool) const {
    WithoutGil([pool] { delete pool; });
  }
};
using PoolHolder = std::unique_ptr<ActorPool, DeleteWithoutGil>;

std::chrono::milliseconds Milliseconds(const char* name, std::int64_t value) {
  // Longer than any wait, and far from the clock's overflow.
  constexpr std::int64_t kMax = std::int64_t{365} * 24 * 3600 * 1000;
  if (value < 0) throw py::value_error(absl::StrCat(name, " = ", value, ": must not be negative"));
  return std::chrono::milliseconds(std::min(value, kMax));
}

std::size_t Count(const char* name, std::int64_t value) {
  if (value < 0) throw py::value_error(absl::StrCat(name, " = ", value, ": must not be negative"));
  return static_cast<std::size_t>(value);
}

PoolHolder MakePool(std::string address, std::string run_id, std::int64_t unroll_length, std::int64_t batch_size,
                    std::int64_t min_inference_rows, std::int64_t max_inference_rows, std::int64_t inference_timeout_ms,
                    std::int64_t max_queued_rollouts, std::int64_t max_streams, std::int64_t max_envs,
                    std::int64_t max_envs_per_stream, std::int64_t max_message_bytes, std::int64_t max_transport_bytes,
                    std::int64_t min_partial_steps, std::int64_t handshake_timeout_ms, std::int64_t step_timeout_ms,
                    std::optional<EnvSpec> expected, std::string tls_cert, std::string tls_key, std::string tls_ca,
                    std::int64_t tls_refresh_s, std::string token_file, std::int64_t max_offences,
                    std::string opening_env, const std::vector<std::pair<std::string, double>>& task_shares,
                    bool keep_surplus, std::vector<std::string> log_info, bool episode_options, bool opponents,
                    bool turns) {
  PoolOptions options;
  options.address = std::move(address);
  options.run_id = std::move(run_id);
  options.unroll_length = Count("unroll_length", unroll_length);
  options.batch_size = Count("batch_size", batch_size);
  options.inference.min_rows = Count("min_inference_rows", min_inference_rows);
  options.inference.max_rows = Count("max_inference_rows", max_inference_rows);
  options.inference.timeout = Milliseconds("inference_timeout_ms", inference_timeout_ms);
  options.max_queued_rollouts = Count("max_queued_rollouts", max_queued_rollouts);
  options.max_streams = Count("max_streams", max_streams);
  options.max_envs = Count("max_envs", max_envs);
  options.keep_surplus = keep_surplus;
  options.wire.max_envs_per_stream =
      static_cast<std::uint32_t>(std::min<std::size_t>(Count("max_envs_per_stream", max_envs_per_stream), UINT32_MAX));
  options.wire.max_message_bytes = Count("max_message_bytes", max_message_bytes);
  options.max_transport_bytes = Count("max_transport_bytes", max_transport_bytes);
  options.min_partial_steps = Count("min_partial_steps", min_partial_steps);
  options.handshake_timeout = Milliseconds("handshake_timeout_ms", handshake_timeout_ms);
  options.step_timeout = Milliseconds("step_timeout_ms", step_timeout_ms);
  options.expected = std::move(expected);
  options.tls = {std::move(tls_cert), std::move(tls_key), std::move(tls_ca), std::chrono::seconds(tls_refresh_s)};
  options.token_file = std::move(token_file);
  options.max_offences = Count("max_offences", max_offences);
  options.opening_env = std::move(opening_env);
  options.log_info = std::move(log_info);
  options.episode_options = episode_options;
  options.opponents = opponents;
  options.turns = turns;
  for (const auto& [env_id, weight] : task_shares) options.tasks.push_back({env_id, weight});
  auto pool = ActorPool::Create(std::move(options));
  ThrowIfError(pool.status());
  return PoolHolder(pool->release());
}

// Calls `wait` without the GIL; returns nullopt at the timeout.
template <typename Wait>
auto OrNone(const Wait& wait) {
  auto result = WithoutGil(wait);
  using Value = decltype(result)::value_type;
  if (absl::IsDeadlineExceeded(result.status())) return std::optional<Value>();
  ThrowIfError(result.status());
  return std::optional<Value>(*std::move(result));
}

void Open(ActorPool& pool, std::int64_t num_logits, std::int64_t core_state_size, const std::vector<bool>& interleaved,
          bool single_frames) {
  const std::size_t logits = Count("num_logits", num_logits);
  const std::size_t state = Count("core_state_size", core_state_size);
  ThrowIfError(WithoutGil([&] { return pool.Open(logits, state, interleaved, single_frames); }));
}

void DialEndpoints(ActorPool& pool, const std::vector<std::pair<std::string, std::string>>& endpoints) {
  std::vector<Endpoint> converted;
  converted.reserve(endpoints.size());
  for (const auto& [address, server_name] : endpoints) converted.push_back({address, server_name});
  ThrowIfError(WithoutGil([&] { return pool.SetEndpoints(converted); }));
}

template <typename Values>
py::dict AsDict(const Values& named_values) {
  py::dict values;
  for (const auto& [name, value] : named_values) values[py::str(std::string(name))] = value;
  return values;
}

void BindMethods(py::class_<ActorPool, PoolHolder>& pool) {
  const auto timeout = [](std::int64_t timeout_ms) { return Milliseconds("timeout_ms", timeout_ms); };
  pool.def("start", [](ActorPool& self) { ThrowIfError(WithoutGil([&self] { return self.Start(); })); })
      .def_property_readonly("address", &ActorPool::address)
      .def(
          "wait_env_spec",
          [timeout](ActorPool& self, std::int64_t timeout_ms) {
            return OrNone([&self, wait = timeout(timeout_ms)] { return self.WaitEnvSpec(wait); });
          },
          py::arg("timeout_ms"))
      .def(
          "expect",
          [](ActorPool& self, const EnvSpec& spec) { ThrowIfError(WithoutGil([&] { return self.Expect(spec); })); },
          py::arg("spec"))
      .def(
          "refuse_env_spec",
          [](ActorPool& self, const std::string& reason) {
            ThrowIfError(WithoutGil([&] { return self.RefuseEnvSpec(reason); }));
          },
          py::arg("reason"))
      .def("open", &Open, py::arg("num_logits"), py::arg("core_state_size"),
           py::arg("interleaved") = std::vector<bool>(), py::arg("single_frames") = false)
      .def(
          "next_inference",
          [timeout](ActorPool& self, std::int64_t timeout_ms) {
            return OrNone([&self, wait = timeout(timeout_ms)] { return self.NextInference(wait); }).value_or(nullptr);
          },
          py::arg("timeout_ms"))
      .def(
          "next_rollouts",
          [timeout](ActorPool& self, std::int64_t timeout_ms, std::int64_t min_policy_version) {
            return OrNone([&self, wait = timeout(timeout_ms), min_policy_version] {
              return self.NextRollouts(wait, min_policy_version);
            });
          },
          py::arg("timeout_ms"), py::arg("min_policy_version") = 0)
      .def(
          "push_episode_options",
          [](ActorPool& self, const std::vector<std::string>& texts) {
            ThrowIfError(WithoutGil([&] { return self.PushEpisodeOptions(texts); }));
          },
          py::arg("texts"))
      .def(
          "wait_options_room",
          [timeout](ActorPool& self, std::int64_t timeout_ms) {
            return OrNone([&self, wait = timeout(timeout_ms)] { return self.WaitOptionsRoom(wait); });
          },
          py::arg("timeout_ms"))
      .def("take_episodes", &ActorPool::TakeEpisodes)
      .def("take_stream_events", &ActorPool::TakeStreamEvents)
      .def("trace_next_step", &ActorPool::TraceNextStep)
      .def("take_step_traces", &ActorPool::TakeStepTraces)
      .def("dial", &DialEndpoints, py::arg("endpoints"))
      .def("drain", &ActorPool::Drain, py::arg("finished") = false, py::call_guard<py::gil_scoped_release>())
      .def("stats", [](const ActorPool& self) { return AsDict(self.GetStats()); })
      .def("histograms", [](const ActorPool& self) { return AsDict(self.GetHistograms()); })
      .def("streams", &ActorPool::GetStreams, py::call_guard<py::gil_scoped_release>())
      .def(
          "close",
          [](ActorPool& self, std::int64_t grace_ms) {
            WithoutGil([&self, grace = Milliseconds("grace_ms", grace_ms)] { self.Close(grace); });
          },
          py::arg("grace_ms") = 1000);
}

}  // namespace

void BindPool(const py::module_& module) {
  py::register_exception<ClosedError>(module, "ClosedError", PyExc_RuntimeError);
  py::class_<ActorPool, PoolHolder> pool(module, "ActorPool");
  pool.def(py::init(&MakePool), py::kw_only(), py::arg("address"), py::arg("run_id"), py::arg("unroll_length"),
           py::arg("batch_size"), py::arg("min_inference_rows") = 1, py::arg("max_inference_rows") = 256,
           py::arg("inference_timeout_ms") = 10, py::arg("max_queued_rollouts") = 0, py::arg("max_streams") = 4096,
           py::arg("max_envs") = 16384, py::arg("max_envs_per_stream") = 1024, py::arg("max_message_bytes") = 64 << 20,
           py::arg("max_transport_bytes") = 0, py::arg("min_partial_steps") = 1,
           py::arg("handshake_timeout_ms") = 10'000, py::arg("step_timeout_ms") = 60'000,
           py::arg("expected") = py::none(), py::arg("tls_cert") = "", py::arg("tls_key") = "", py::arg("tls_ca") = "",
           py::arg("tls_refresh_s") = 10, py::arg("token_file") = "", py::arg("max_offences") = 20,
           py::arg("opening_env") = "", py::arg("task_shares") = py::tuple(), py::arg("keep_surplus") = false,
           py::arg("log_info") = py::tuple(), py::arg("episode_options") = false, py::arg("opponents") = false,
           py::arg("turns") = true);
  BindMethods(pool);
}

}  // namespace kubebeast
