// Conversion of texts from peers to Python strings.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace kubebeast {

// Decodes UTF-8, with replacement characters if a peer breaks the contract.
inline pybind11::str AsText(const std::string& bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<pybind11::ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(text);
}

}  // namespace kubebeast
