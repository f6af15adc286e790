// Binding functions, one per area of the module.
#pragma once

#include <pybind11/pybind11.h>

namespace kubebeast {

void BindSpec(const pybind11::module_& module);
void BindInference(const pybind11::module_& module);
void BindRollouts(const pybind11::module_& module);
void BindEvents(const pybind11::module_& module);
void BindPool(const pybind11::module_& module);
void BindActCall(const pybind11::module_& module);

}  // namespace kubebeast
