#include <pybind11/stl.h>

#include <string>

#include "bindings.h"
#include "stats/histogram.h"
#include "stream/pool_events.h"

namespace kubebeast {

namespace py = pybind11;

namespace {

const char* KindName(const StreamEvent& event) {
  switch (event.kind) {
    case StreamEvent::Kind::kJoined:
      return "joined";
    case StreamEvent::Kind::kLeft:
      return "left";
    case StreamEvent::Kind::kRefused:
      return "refused";
    case StreamEvent::Kind::kDialFailed:
      return "dial_failed";
    case StreamEvent::Kind::kConnectionRefused:
      return "connection_refused";
    case StreamEvent::Kind::kAcceptFailed:
      return "accept_failed";
  }
  return "";
}

const char* StateName(const StreamInfo& info) {
  switch (info.state) {
    case StreamClock::State::kStarting:
      return "starting";
    case StreamClock::State::kEnv:
      return "env";
    case StreamClock::State::kInference:
      return "inference";
    case StreamClock::State::kParked:
      return "parked";
  }
  return "";
}

// A peer's words are UTF-8 if it keeps to the contract.
py::str AsText(const std::string& bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

}  // namespace

void BindEvents(const py::module_& module) {
  py::class_<Episode>(module, "Episode")
      .def_readonly("env_server_id", &Episode::env_server_id)
      .def_readonly("env_id", &Episode::env_id)
      .def_readonly("episode_return", &Episode::episode_return)
      .def_readonly("length", &Episode::length);

  py::class_<StreamEvent>(module, "StreamEvent")
      .def_property_readonly("kind", &KindName)
      .def_readonly("env_server_id", &StreamEvent::env_server_id)
      .def_readonly("instance_id", &StreamEvent::instance_id)
      .def_readonly("env_id", &StreamEvent::env_id)
      .def_readonly("num_envs", &StreamEvent::num_envs)
      .def_readonly("peer", &StreamEvent::peer)
      .def_readonly("reason", &StreamEvent::reason)
      .def_property_readonly("detail", [](const StreamEvent& event) { return AsText(event.detail); })
      .def_readonly("env_config", &StreamEvent::env_config);

  py::class_<StreamInfo>(module, "StreamInfo")
      .def_readonly("env_server_id", &StreamInfo::env_server_id)
      .def_readonly("instance_id", &StreamInfo::instance_id)
      .def_readonly("env_id", &StreamInfo::env_id)
      .def_readonly("peer", &StreamInfo::peer)
      .def_readonly("num_envs", &StreamInfo::num_envs)
      .def_property_readonly("state", &StateName)
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
}

}  // namespace kubebeast
