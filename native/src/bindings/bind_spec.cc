#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings.h"
#include "tensors/tensor_spec.h"

namespace kubebeast {
namespace {

namespace py = pybind11;

constexpr DType kDTypes[] = {DType::kUint8, DType::kInt8,    DType::kInt16,   DType::kInt32,
                             DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kBool};

DType ParseDType(const std::string& name) {
  for (const DType dtype : kDTypes) {
    if (name == DTypeName(dtype)) return dtype;
  }
  throw py::value_error(absl::StrCat("dtype '", name, "' cannot travel"));
}

LeafSpec MakeLeafSpec(std::string path, const std::string& dtype, std::vector<std::int64_t> shape,
                      std::uint32_t frame_stack, std::int64_t num_categories, bool bounded, bool is_action_mask) {
  for (const std::int64_t dim : shape) {
    if (dim < 0) throw py::value_error(absl::StrCat("shape has the negative dimension ", dim));
  }
  if (frame_stack == 0) throw py::value_error("frame_stack = 0: must be at least 1");
  if (num_categories < 0) throw py::value_error(absl::StrCat("num_categories = ", num_categories, ": is negative"));
  return {std::move(path), ParseDType(dtype), std::move(shape), frame_stack, num_categories, bounded, is_action_mask};
}

std::string Describe(const EnvSpec& spec) {
  std::string text = absl::StrCat("EnvSpec(", spec.env_id, ", observation:");
  for (const LeafSpec& leaf : spec.observation) absl::StrAppend(&text, " ", leaf.ToString());
  absl::StrAppend(&text, ", action:");
  for (const LeafSpec& leaf : spec.action) absl::StrAppend(&text, " ", leaf.ToString());
  return text + ")";
}

}  // namespace

void BindSpec(const py::module_& module) {
  py::class_<LeafSpec>(module, "LeafSpec")
      .def(py::init(&MakeLeafSpec), py::arg("path"), py::arg("dtype"), py::arg("shape"), py::arg("frame_stack") = 1,
           py::arg("num_categories") = 0, py::arg("bounded") = false, py::arg("is_action_mask") = false)
      .def_readonly("path", &LeafSpec::path)
      .def_property_readonly("dtype", [](const LeafSpec& leaf) { return DTypeName(leaf.dtype); })
      .def_property_readonly("shape", [](const LeafSpec& leaf) { return py::tuple(py::cast(leaf.shape)); })
      .def_readonly("frame_stack", &LeafSpec::frame_stack)
      .def_readonly("num_categories", &LeafSpec::num_categories)
      .def_readonly("bounded", &LeafSpec::bounded)
      .def_readonly("is_action_mask", &LeafSpec::is_action_mask)
      .def_property_readonly("row_shape", [](const LeafSpec& leaf) { return py::tuple(py::cast(leaf.row_shape())); })
      .def("__repr__", [](const LeafSpec& leaf) { return "LeafSpec(" + leaf.ToString() + ")"; });

  py::class_<EnvSpec>(module, "EnvSpec")
      .def(py::init([](std::string env_id, std::vector<LeafSpec> observation, std::vector<LeafSpec> action,
                       std::string env_config) {
             return EnvSpec{std::move(env_id), std::move(env_config), std::move(observation), std::move(action)};
           }),
           py::arg("env_id"), py::arg("observation"), py::arg("action"), py::arg("env_config") = "")
      .def_readonly("env_id", &EnvSpec::env_id)
      .def_readonly("env_config", &EnvSpec::env_config)
      .def_readonly("observation", &EnvSpec::observation)
      .def_readonly("action", &EnvSpec::action)
      .def("__repr__", &Describe);
}

}  // namespace kubebeast
