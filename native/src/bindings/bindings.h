// One function an area of the module.
#pragma once

#include <pybind11/pybind11.h>

namespace kubebeast {

void BindSpec(pybind11::module_& module);
void BindInference(pybind11::module_& module);
void BindRollouts(pybind11::module_& module);
void BindPool(pybind11::module_& module);

}  // namespace kubebeast
