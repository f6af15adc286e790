#include "bindings.h"
#include "inference/step_trace.h"

namespace kubebeast {

namespace py = pybind11;

void BindStepTrace(const py::module_& module) {
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
