#include <pybind11/stl.h>

#include <string>

#include "bindings.h"
#include "pool_events.h"

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
      .def_property_readonly("detail", [](const StreamEvent& event) { return AsText(event.detail); });
}

}  // namespace kubebeast
