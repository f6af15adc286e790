// Helpers for calls from Python into the core: release of the GIL, and exceptions for statuses.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "absl/status/status.h"

namespace kubebeast {

// Exception translated to kubebeast_native._core.ClosedError.
class ClosedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Needs the GIL. InvalidArgument → ValueError, Unavailable → OSError, Cancelled → ClosedError, others → RuntimeError.
inline void ThrowIfError(const absl::Status& status) {
  if (status.ok()) return;
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      throw pybind11::value_error(message);
    case absl::StatusCode::kUnavailable:
      PyErr_SetString(PyExc_OSError, message.c_str());
      throw pybind11::error_already_set();
    case absl::StatusCode::kCancelled:
      throw ClosedError("the actor pool is closed");
    default:
      throw std::runtime_error(message);
  }
}

// Returns the result of `call`, which runs without the GIL.
template <typename Call>
auto WithoutGil(const Call& call) {
  const pybind11::gil_scoped_release release;
  return call();
}

}  // namespace kubebeast
