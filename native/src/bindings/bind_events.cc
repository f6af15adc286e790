#include <pybind11/stl.h>

#include <cstddef>
#include <string>

#include "bindings.h"
#include "inference/step_trace.h"
#include "stats/histogram.h"
#include "stream/pool_events.h"
#include "text.h"

namespace kubebeast {

namespace py = pybind11;

namespace {

// In the order of StreamEvent::Kind.
constexpr const char* kKinds[] = {"joined", "left", "refused", "dial_failed", "connection_refused", "accept_failed"};
// In the order of StreamClock::State.
constexpr const char* kStates[] = {"starting", "env", "inference", "parked"};

}  // namespace

void BindEvents(const py::module_& module) {
  py::class_<Episode>(module, "Episode")
      .def_readonly("env_server_id", &Episode::env_server_id)
      .def_readonly("env_id", &Episode::env_id)
      .def_readonly("episode_return", &Episode::episode_return)
      .def_readonly("length", &Episode::length)
      .def_readonly("info", &Episode::info)
      .def_readonly("instance_id", &Episode::instance_id)
      .def_readonly("step", &Episode::step)
      .def_readonly("options", &Episode::options)
      .def_readonly("opponents", &Episode::opponents);

  py::class_<StreamEvent>(module, "StreamEvent")
      .def_property_readonly("kind",
                             [](const StreamEvent& event) { return kKinds[static_cast<std::size_t>(event.kind)]; })
      .def_readonly("env_server_id", &StreamEvent::env_server_id)
      .def_readonly("instance_id", &StreamEvent::instance_id)
      .def_readonly("env_id", &StreamEvent::env_id)
      .def_readonly("num_envs", &StreamEvent::num_envs)
      .def_readonly("peer", &StreamEvent::peer)
      .def_readonly("reason", &StreamEvent::reason)
      .def_property_readonly("detail", [](const StreamEvent& event) { return AsText(event.detail); })
      .def_readonly("env_config", &StreamEvent::env_config)
      .def_readonly("protocol_minor", &StreamEvent::protocol_minor);

  py::class_<StreamInfo>(module, "StreamInfo")
      .def_readonly("env_server_id", &StreamInfo::env_server_id)
      .def_readonly("instance_id", &StreamInfo::instance_id)
      .def_readonly("env_id", &StreamInfo::env_id)
      .def_readonly("peer", &StreamInfo::peer)
      .def_property_readonly("num_envs", [](const StreamInfo& info) { return info.slots.size(); })
      .def_readonly("slots", &StreamInfo::slots)
      .def_property_readonly("state",
                             [](const StreamInfo& info) { return kStates[static_cast<std::size_t>(info.state)]; })
      .def_readonly("num_steps", &StreamInfo::num_steps)
      .def_readonly("num_episodes", &StreamInfo::num_episodes)
      .def_readonly("connected_s", &StreamInfo::connected_s)
      .def_readonly("env_s", &StreamInfo::env_s)
      .def_readonly("action_s", &StreamInfo::action_s)
      .def_readonly("parked_s", &StreamInfo::parked_s);

  py::class_<Histogram::Snapshot>(module, "Histogram")
      .def_readonly("bounds", &Histogram::Snapshot::bounds)
      .def_readonly("counts", &Histogram::Snapshot::counts)
      .def_readonly("sum", &Histogram::Snapshot::sum);

  py::class_<StepTrace>(module, "StepTrace")
      .def_readonly("env_server_id", &StepTrace::env_server_id)
      .def_readonly("instance_id", &StepTrace::instance_id)
      .def_readonly("env_id", &StepTrace::env_id)
      .def_readonly("num_envs", &StepTrace::num_envs)
      .def_readonly("step", &StepTrace::step)
      .def_readonly("batch_rows", &StepTrace::batch_rows)
      .def_readonly("policy_version", &StepTrace::policy_version)
      .def_readonly("env_ns", &StepTrace::env_ns)
      .def_readonly("actions_sent_ns", &StepTrace::actions_sent_ns)
      .def_readonly("received_ns", &StepTrace::received_ns)
      .def_readonly("submitted_ns", &StepTrace::submitted_ns)
      .def_readonly("taken_ns", &StepTrace::taken_ns)
      .def_readonly("gathered_ns", &StepTrace::gathered_ns)
      .def_readonly("answered_ns", &StepTrace::answered_ns)
      .def_readonly("replied_ns", &StepTrace::replied_ns);
}

}  // namespace kubebeast
