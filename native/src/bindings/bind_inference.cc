#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "array_view.h"
#include "bindings.h"
#include "errors.h"
#include "inference/inference_batch.h"

namespace kubebeast {
namespace {

namespace py = pybind11;

InferenceBatch::Reply CheckReply(const InferenceBatch& batch, const std::vector<py::array>& actions,
                                 const py::array& policy_logits, const py::array& baseline, std::int64_t policy_version,
                                 const std::optional<py::array>& core_state,
                                 const std::optional<py::array>& opponents) {
  const UnrollShape& shape = batch.shape();
  const auto size = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  const std::int64_t rows = size(batch.num_rows());
  if (actions.size() != shape.spec.action.size()) {
    throw py::value_error(absl::StrCat("actions has ", actions.size(), " arrays, expected ", shape.spec.action.size()));
  }
  InferenceBatch::Reply reply;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    std::vector<std::int64_t> expected = shape.spec.action[i].shape;
    expected.insert(expected.begin(), rows);
    reply.actions.push_back(
        CheckedData(absl::StrCat("actions[", i, "]"), actions[i], shape.spec.action[i].dtype, expected));
  }
  const auto floats = [](const char* name, const py::array& array, const std::vector<std::int64_t>& expected) {
    return reinterpret_cast<const float*>(CheckedData(name, array, DType::kFloat32, expected));
  };
  reply.policy_logits = floats("policy_logits", policy_logits, {rows, size(shape.num_logits)});
  reply.baseline = floats("baseline", baseline, {rows});
  reply.policy_version = policy_version;
  const std::vector<std::int64_t> states{size(batch.num_unroll_starts()), size(shape.core_state_size)};
  if (core_state.has_value()) {
    reply.core_state = floats("core_state", *core_state, states);
  } else if (shape.core_state_size > 0) {
    throw py::value_error(absl::StrCat("core_state is None, expected float32 [", absl::StrJoin(states, ", "), "]"));
  }
  if (opponents.has_value()) {
    const std::uint8_t* const data = CheckedData("opponents", *opponents, DType::kInt64, {rows});
    reply.opponents = reinterpret_cast<const std::int64_t*>(data);
  }
  return reply;
}

void Answer(InferenceBatch& batch, const std::vector<py::array>& actions, const py::array& policy_logits,
            const py::array& baseline, std::int64_t policy_version, const std::optional<py::array>& core_state,
            const std::optional<py::array>& opponents) {
  const InferenceBatch::Reply reply =
      CheckReply(batch, actions, policy_logits, baseline, policy_version, core_state, opponents);
  ThrowIfError(WithoutGil([&] { return batch.Answer(reply); }));
}

std::vector<std::unique_ptr<InferenceBatch>> Split(InferenceBatch& batch) {
  auto parts = batch.Split();
  ThrowIfError(parts.status());
  return *std::move(parts);
}

}  // namespace

void BindInference(const py::module_& module) {
  const auto view = [](auto member) {
    return [member](const InferenceBatch& batch) { return AsNumpy(batch.*member); };
  };
  py::class_<InferenceBatch>(module, "InferenceBatch")
      .def_property_readonly("num_rows", &InferenceBatch::num_rows)
      .def_property_readonly("observation", view(&InferenceBatch::observation))
      .def_property_readonly("first_stacks", view(&InferenceBatch::first_stacks))
      .def_property_readonly("rewards", view(&InferenceBatch::rewards))
      .def_property_readonly("terminated", view(&InferenceBatch::terminated))
      .def_property_readonly("truncated", view(&InferenceBatch::truncated))
      .def_property_readonly("is_first", view(&InferenceBatch::is_first))
      .def_property_readonly("interrupted", view(&InferenceBatch::interrupted))
      .def_property_readonly("last_actions", view(&InferenceBatch::last_actions))
      .def_property_readonly("slots", view(&InferenceBatch::slots))
      .def_property_readonly("unroll_start", view(&InferenceBatch::unroll_start))
      .def_property_readonly("task", view(&InferenceBatch::task))
      .def_property_readonly("opponent", view(&InferenceBatch::opponent))
      .def("split", &Split)
      .def("reply", &Answer, py::arg("actions"), py::arg("policy_logits"), py::arg("baseline"),
           py::arg("policy_version"), py::arg("core_state") = py::none(), py::arg("opponents") = py::none());
}

}  // namespace kubebeast
