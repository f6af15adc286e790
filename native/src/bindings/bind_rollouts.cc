#include <pybind11/stl.h>

#include "array_view.h"
#include "bindings.h"
#include "rollouts/rollout_batch.h"

namespace kubebeast {

namespace py = pybind11;

void BindRollouts(const py::module_& module) {
  const auto view = [](auto member) { return [member](const RolloutBatch& batch) { return AsNumpy(batch.*member); }; };
  py::class_<RolloutBatch>(module, "RolloutBatch")
      .def_property_readonly("observation", view(&RolloutBatch::observation))
      .def_property_readonly("frame_index", view(&RolloutBatch::frame_index))
      .def_property_readonly("rewards", view(&RolloutBatch::rewards))
      .def_property_readonly("terminated", view(&RolloutBatch::terminated))
      .def_property_readonly("truncated", view(&RolloutBatch::truncated))
      .def_property_readonly("is_first", view(&RolloutBatch::is_first))
      .def_property_readonly("last_actions", view(&RolloutBatch::last_actions))
      .def_property_readonly("actions", view(&RolloutBatch::actions))
      .def_property_readonly("policy_logits", view(&RolloutBatch::policy_logits))
      .def_property_readonly("baseline", view(&RolloutBatch::baseline))
      .def_property_readonly("policy_version", view(&RolloutBatch::policy_version))
      .def_property_readonly("valid", view(&RolloutBatch::valid))
      .def_property_readonly("core_state", view(&RolloutBatch::core_state))
      .def_property_readonly("task", view(&RolloutBatch::task))
      .def_property_readonly("origin", view(&RolloutBatch::origin))
      .def_readonly("num_transitions", &RolloutBatch::num_transitions);
}

}  // namespace kubebeast
